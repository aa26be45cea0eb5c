// Small talk: words between people that ask for nothing and tell nothing that work could follow from. Known by its words alone, and only
// when there is no other word beside them: whatever else is said is for a mind to judge.

/** Longer talk says something. */
const maxChars = 120;

/** What makes a text small talk: thanks, assent, greetings, laughter. One of them must be there. */
const telling = words(`
  thanks thank thx ty tysm cheers ta appreciated welcome yw np
  ok okay okey k kk oki alright yes yeah yep yup yea ja si oui sure aye agreed agree indeed exactly absolutely definitely true right fair
  nice cool great awesome perfect wonderful lovely excellent brilliant sweet neat amazing fantastic super good fine well best love
  lgtm sgtm congrats congratulations kudos bravo hooray yay woohoo wow whoa
  morning afternoon evening night weekend friday monday hello hi hey hiya yo bye goodbye ciao cu later tomorrow holiday holidays birthday
  lol haha hahaha hahahaha hehe rofl lmao xd omg oops ouch ah oh ooh aha hmm hm phew tgif interesting funny
  sorry afk brb gtg bbl noted understood same finally luck
  danke moin servus hallo tschüss prima genau gerne guten merci bonjour salut gracias hola buenos buenas vale grazie obrigado obrigada
`);

/** Words that say nothing by themselves. */
const filling = words(`
  i i'm im i'll me my mine you your yours u ur we us our it it's its that that's this these those they them he she both
  a an the is am are was were be been so too very much many lot really quite just also as at by for from in of to and or but with
  all everyone everybody folks team guys people day week year happy hope know think here there now today soon half hour minute bit
  one point reply question like enjoy
  zusammen morgen tag alle viel vielen dank schönes wochenende bis später tous tout à les muchas muchos días tardes todos mil
`);

/** What several words mean together, though one of them alone could mean work. */
const phrases = [
  "makes sense",
  "sounds good",
  "looks good",
  "looks great",
  "works for me",
  "good to know",
  "letting me know",
  "got it",
  "have a",
  "see you",
  "i see",
  "my bad",
  "me too",
  "me neither",
  "on my way",
  "good idea",
  "great news",
  "a new week",
  "back in",
  "off for",
  "fair enough",
  "no problem",
  "no worries",
  "not sure",
  "never mind",
  "oh no",
  "wrong channel",
  "fingers crossed",
  "take care",
  "get well",
  "well done",
  "talk to you",
];

/** In scripts without spaces between words: whole utterances. */
const utterances = words(`
  谢谢 多谢 收到 好的 好 是的 哈哈 哈哈哈 辛苦了 早 早上好 晚安 恭喜 没问题 明白 明白了
  ありがとう ありがとうございます 了解 了解です 承知しました お疲れ様です おはようございます はい
  감사합니다 고마워요 네 넵 확인했습니다 수고하셨습니다 ㅋㅋ ㅋㅋㅋ ㅎㅎ
`);

const asking = /[?？¿@#`$\\|{}<>=]|:\/\/|\d/u;
const emoticon = /(?:^|\s)(?:[:;=8xX][-']?[)(DdPpOo3/|]+|\^\^|<3)(?=\s|$)/gu;
const emoji = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u{200d}|\u{fe0f}/gu;

/** [G14] Whether the text is small talk and nothing else. */
export function isSmallTalk(text: string): boolean {
  if (text.length > maxChars) return false;
  const bare = text.normalize("NFC").replaceAll("’", "'").replace(emoticon, " ").replace(emoji, " ");
  const onlySigns = /^\s*\+1\s*/u.exec(bare);
  const rest = (onlySigns ? bare.slice(onlySigns[0].length) : bare).toLowerCase();
  if (asking.test(rest)) return false;
  let left = ` ${(rest.match(/[\p{L}\p{M}'-]+/gu) ?? []).join(" ")} `;
  const before = left;
  for (const phrase of phrases) left = left.replace(` ${phrase} `, " ");
  const said = left.split(" ").filter(Boolean);
  // A sign alone, a smile, an ellipsis: nobody can be asked for anything by it. An empty text is not talk.
  if (said.length === 0) return text.trim() !== "";
  const known = said.every((word) => telling.has(word) || filling.has(word) || utterances.has(word));
  return known && (left !== before || onlySigns !== null || said.some((word) => telling.has(word) || utterances.has(word)));
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(/\s+/).filter(Boolean));
}
