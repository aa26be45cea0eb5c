// “What do you remember?”: the offline router looks its facts up, and says in the next step what it found.
import type { Answer, Chat } from "./chat.ts";

const found = /^\{"find":"","kind":"fact",/;
const shown = 5;

export const listFacts: NonNullable<Answer["calls"]> = [{ tool: "find", input: { kind: "fact" } }];

export const asksWhatIsKept = (text: string): boolean =>
  /^(?:@\S+[\s,:]+)?(?:what (?:do|did|have) you (?:remember(?:ed)?|kept?)(?: (?:here|about (?:me|us|the team)))?|(?:list|show)(?: me)?(?: the| all| your)? (?:facts|memories))[?.!\s]*$/i.test(
    text.trim(),
  );

/** The answer to the look-up of this turn, in words; null while there is none. */
export function factsFound(chat: Chat): string | null {
  const since = chat.messages.findLastIndex(({ role }) => role === "user");
  const answer = chat.messages.slice(since + 1).findLast((message) => message.role === "tool" && found.test(message.output));
  if (answer?.role !== "tool") return null;
  const [head, ...lines] = answer.output.split("\n").map((line) => JSON.parse(line) as { found?: number; text?: string; from?: string });
  const total = head?.found ?? 0;
  if (total === 0) return "I remember nothing that I may tell here. To have me remember something, say: remember that …";
  const facts = lines.slice(0, shown).map(({ text, from }) => `- ${text} (${from})`);
  return [`I remember, the newest first:`, ...facts, ...(total > facts.length ? [`and ${total - facts.length} more.`] : [])].join("\n");
}
