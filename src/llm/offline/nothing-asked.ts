// Talk that wants no answer: somebody takes note, takes a message back, says that none is wanted, or tells others of us. Answering it
// would disturb people.
import { literal } from "../../core/regexp.ts";

const wordList = (words: string): Set<string> => new Set(words.split(" "));
/** Words with which people take note, in languages that are often met. */
const closing = wordList(
  "ok okay okey k kk alright right great nice perfect cool awesome excellent wonderful lovely amazing super sweet neat good fine " +
    "thanks thank thx ty tnx cheers understood noted roger ack haha hahaha hehe lol lmao rofl wow phew yay helped " +
    "danke dank passt klar gut prima toll merci parfait gracias vale genial perfecto obrigado obrigada grazie bedankt tack dzięki спасибо " +
    "ありがとう ありがとうございます ありがとうございました 了解 了解です 谢谢 감사합니다",
);
/** Words that stand beside those, and say nothing by themselves. */
const beside = wordList(
  "you u so very much a lot that this it is was helps works worked well done all got again enough fair job work bot " +
    "dir euch schön schoen vielen besten alles beaucoup bien muchas mille bene je wel",
);
const maxWords = 10;

const takenBack = [
  /^(?:(?:oh|oops|ups|sorry|ah|no)[,.! ]+)*(?:please )?(?:ignore|disregard|never ?mind|forget)(?: (?:that|this|it|me|about (?:it|that)|(?:my|the) (?:last |previous |above )?(?:message|mention|question|comment)|the above))?(?: please)?(?:$|[,.!;:]| ?[–—-] )/iu,
  /\bwrong (?:window|chat|channel|thread|issue|tab|person|room)\b/i,
  /^(?:that|this|it) (?:was|is)(?: meant)? for (?!you\b)[\w-]+[.!]*$/i,
];

const noAnswerWanted =
  /\bno (?:reply|answer|response)s? (?:is )?(?:needed|necessary|required|expected)\b|\b(?:no need to|don['’]?t need to|needn['’]?t|don['’]?t bother to) (?:reply|answer|respond)\b|\bkeine antwort (?:nötig|noetig|notwendig)\b/iu;

/** Why a text asks for nothing; null when it may ask for something. `name` is ours. */
export function nothingAsked(text: string, name: string): "it takes note" | "it is taken back" | "it wants no answer" | null {
  const said = text.replace(/(^|\s)@[\w-]+(?:\[bot\])?[,:]?/g, "$1").trim();
  if (noAnswerWanted.test(said)) return "it wants no answer";
  if (said.includes("?")) return null;
  if (takenBack.some((form) => form.test(said))) return "it is taken back";
  if (/^(?:\p{RGI_Emoji}|\s)+$/v.test(said)) return "it takes note";
  const words = said
    .normalize("NFC")
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter((word) => word !== "" && word !== name.toLowerCase());
  const only = words.every((word) => closing.has(word) || beside.has(word)) && words.some((word) => closing.has(word));
  return only && words.length <= maxWords ? "it takes note" : null;
}

const quotation = /(?<![\p{L}\p{N}])["“„«](?=\S)[^"“”„«»\n]*(?<=\S)["”“»]/gu;
/** People who get a copy. */
const copies = /(?<![\p{L}\p{N}])cc:?(?:[\s,]+@[\w-]+)+/giu;

/** How others are told of us: our name stands only in words that are quoted, or among those who get a copy. Null: we may be called. */
export function toldOfUs(text: string, name: string): "it quotes what is said to us" | "it lets us know" | null {
  const named = new RegExp(`(?<![\\w@/-])@${literal(name)}(?![\\w-])`, "iu");
  const without = (part: RegExp): string => text.replace(part, (said) => (named.test(said) ? "" : said));
  if (name === "" || !named.test(text)) return null;
  if (!named.test(without(quotation))) return "it quotes what is said to us";
  return named.test(without(copies)) ? null : "it lets us know";
}
