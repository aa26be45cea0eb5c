// “What do you remember?”, and “forget that …”: the offline router looks its facts up, and in the next step says or does what they ask for.
import { excerpt } from "../../core/context.ts";
import { termsOf } from "../../core/router-memory.ts";
import type { Answer, Chat } from "./chat.ts";
import { nothingAsked } from "./nothing-asked.ts";

type Calls = NonNullable<Answer["calls"]>;
type Hit = { id: string; text: string; from: string };
type Found = { total: number; hits: Hit[] };

const shown = 5;
/** Room for some of them within the limit of a chat. */
const shownChars = 70;
/** As the answer repeats what was looked for. */
const queryChars = 200;

export const listFacts: Calls = [{ tool: "find", input: { kind: "fact" } }];

export const asksWhatIsKept = (text: string): boolean =>
  /^(?:@\S+[\s,:]+)?(?:what (?:do|did|have) you (?:remember(?:ed)?|kept?)(?: (?:here|about (?:me|us|the team)))?|(?:list|show)(?: me)?(?: the| all| your)? (?:facts|memories))[?.!\s]*$/i.test(
    text.trim(),
  );

/** What is to be forgotten, in words or as an id; null when nothing is: “forget it” takes a message back. */
export function askedToForget(text: string): string | null {
  if (nothingAsked(text, "") !== null) return null;
  const said = /^(?:@\S+\s+)?(?:please\s+)?forget\s+(?:(?:that|about|everything about)\s+)?(\S.{1,398})$/isu.exec(text.trim())?.[1];
  const words = said?.replace(/[.!?\s]+$/u, "") ?? "";
  return words.length < 2 ? null : words;
}

/** The look-ups of this turn that were answered: what was looked for, and what was found. */
function foundIn(chat: Chat): ReadonlyMap<string, Found> {
  const since = chat.messages.findLastIndex(({ role }) => role === "user");
  return new Map(
    chat.messages.slice(since + 1).flatMap((message) => {
      if (message.role !== "tool" || !/^\{"find":".*","kind":"fact",/.test(message.output)) return [];
      const [head, ...hits] = message.output.split("\n").map((line) => JSON.parse(line) as { find?: string; found?: number } & Hit);
      return [[head?.find ?? "", { total: head?.found ?? 0, hits }] as const];
    }),
  );
}

/** What this turn looked up about facts. */
export function factsOf(chat: Chat): { kept: string | null; forgetting: (settles: string[], what: string) => Calls } {
  const found = foundIn(chat);
  const all = found.get("");
  return {
    kept: all === undefined ? null : keptWords(all),
    forgetting: (settles, what) => forgetting(settles, what, found.get(excerpt(what, queryChars))),
  };
}

/** The answer to the look-up of this turn, in words. */
function keptWords({ total, hits }: Found): string {
  if (total === 0) return "I remember nothing that I may tell here. To have me remember something, say: remember that …";
  const facts = hits.slice(0, shown).map(({ text, from }) => `- ${text} (${from})`);
  return ["I remember, the newest first:", ...facts, ...(total > facts.length ? [`and ${total - facts.length} more.`] : [])].join("\n");
}

/** One fact only is forgotten: whoever might mean several, or none that is known, is asked. */
function forgetting(settles: string[], what: string, found: Found | undefined): Calls {
  const forget = (id: string): Calls => [{ tool: "remember", input: { settles, replaces: id } }];
  const ask = (first: string, hits: readonly Hit[], last: string): Calls => {
    const lines = hits.slice(0, shown).map(({ id, text, from }) => `- ${excerpt(text, shownChars)} (${from}; ${id})`);
    return [{ tool: "reply", input: { settles, text: [first, ...lines, last].join("\n") } }];
  };
  if (/^fct_[a-z0-9-]+$/.test(what)) return forget(what);
  if (/^(?:everything|all)$/i.test(what)) return ask("I forget one thing at a time.", [], toSee);
  if (found === undefined) return [{ tool: "find", input: { query: excerpt(what, queryChars), kind: "fact" } }];
  const same = found.hits.filter(({ text }) => wordsOf(text) === wordsOf(what));
  const holding = found.hits.filter(({ text }) => holdsAll(text, what));
  const [only, ...others] = same.length > 0 ? same : holding;
  if (only !== undefined && others.length === 0) return forget(only.id);
  if (only !== undefined)
    return ask("Which one shall I forget?", [only, ...others], "Say “forget” with its id, or with more of its words.");
  if (found.hits.length > 0)
    return ask("I do not remember just that. I remember:", found.hits, "Say “forget” with the words or the id of one.");
  return ask("I remember nothing of that sort that I may tell here.", [], toSee);
}

const toSee = "To see what I remember, ask: what do you remember?";

const wordsOf = (text: string): string => termsOf(text).join(" ");

const holdsAll = (text: string, what: string): boolean => {
  const words = termsOf(text);
  const asked = termsOf(what);
  return asked.length > 0 && asked.every((term) => words.some((word) => word.startsWith(term)));
};
