// Talk that wants no answer: somebody takes note, takes a message back, says that none is wanted, or tells others of us. Answering it
// would disturb people.
import { escaped, readIntents } from "./read-intents.ts";

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
const sentenceEnd = /(?<=[.!?…])\s+|\n+/;
const clauseEnd = /[,;:()–—]|\s-\s/;
const isKnown = (text: string): boolean => readIntents({ text }).every(({ kind }) => kind !== "unknown");
const asks = (text: string): boolean => readIntents({ text }).some(({ kind }) => kind !== "unknown");

/**
 * How others are told of us: in words that are quoted, or with our name within a sentence in which nothing is asked that is known here.
 * Who is called stands where a sentence or a clause begins, perhaps after a few words that open it, or at its end. Null: we may be called.
 */
export function toldOfUs(text: string, name: string): "it quotes what is said to us" | "it speaks of us" | null {
  const named = new RegExp(`(?<![\\w@/-])@${escaped(name)}(?![\\w-])`, "iu");
  if (name === "" || !named.test(text)) return null;
  const own = text.replace(quotation, (quoted) => (named.test(quoted) ? "" : quoted));
  if (!named.test(own)) return "it quotes what is said to us";
  const isCalled = own.split(sentenceEnd).some((sentence) => {
    const [before, ...after] = sentence.split(named);
    if (before === undefined || after.length === 0) return false;
    const lead = before.split(clauseEnd).at(-1)?.trim() ?? "";
    const rest = after.join(" ");
    const isAtEdge = lead.split(/\s+/).length <= (/^[,;:]/.test(rest) ? 3 : 1) || !/[\p{L}\p{N}]/u.test(rest);
    return isAtEdge || isKnown(lead) || asks(sentence) || asks(rest);
  });
  return isCalled ? null : "it speaks of us";
}
