// What the router remembers: facts that people of the team told it, and how tasks, decisions and threads are found again by words.
import type { FactLine } from "../protocol/console.ts";
import type { RouterItem } from "../protocol/context-items.ts";
import type { RouterEvent } from "../protocol/events.ts";
import type { ModelReply } from "../protocol/model.ts";
import type { Lane, Principal } from "../protocol/principal.ts";
import type { FactKind, FactReach, FoundKind } from "../protocol/router-tools.ts";
import { audienceAt, audienceOf, hasKnownTitle, mayFlow, operatorAudience, teamAudience, webAudience } from "./audience.ts";
import { excerpt } from "./context.ts";
import { type ContextFigures, type InboxItem, type KnownTask, laneOfTrigger, type QueuedTrigger, type RouterMeta } from "./router.ts";

/** Facts that one turn brings along, and their characters together. */
export const maxFacts = 8;
const maxFactChars = 1_500;
const maxTerms = 24;
export const hitsPerPage = 10;

export type Fact = {
  id: string;
  kind: FactKind;
  text: string;
  source: string;
  place: string;
  threadId: string;
  triggerId: string;
  by: Pick<Principal, "role" | "id" | "name">;
  /** Who may hear it: who reads the conversation where it was said, or the whole team. */
  for?: FactReach | undefined;
  atMs: number;
  /** The fact that took its place. */
  replacedBy?: string;
  /** How often decisions rested on it, and when the last one did. */
  used?: number;
  usedMs?: number;
  /** Its words are gone. */
  forgotten?: Forgotten;
};

/** Who had a fact forgotten, when, and where: in the console there is no thread. */
export type Forgotten = { by: Fact["by"]; atMs: number; threadId?: string; triggerId?: string; decisionId?: string };

/** [A9] What somebody told in a conversation of their own stays there, unless it was said to the team; a rule is for the team by itself. */
export const reachOf = (fact: Pick<Fact, "kind" | "for">): FactReach => fact.for ?? (fact.kind === "rule" ? "team" : "here");

export const factAudience = (fact: Pick<Fact, "kind" | "for" | "source" | "place" | "by">): string =>
  reachOf(fact) === "team" ? teamAudience : audienceAt(fact, fact.by.id);

/** [RD10] A fact takes the place of another where that one may be heard, and only for all who knew it: else both stay. */
export function mayReplace(old: Fact, fact: Fact): boolean {
  const said = factAudience({ ...fact, for: "here" });
  const reach = factAudience(fact);
  return mayFlow(factAudience(old), said) && (reach === teamAudience || reach === factAudience(old));
}

/** [RD17] A fact as it is recalled. Of a forgotten one only that there was one, and who had it forgotten. */
export function factText(fact: Fact): string {
  const on = new Date(fact.atMs).toISOString();
  if (fact.forgotten === undefined) return JSON.stringify({ fact: fact.id, ...fact, on });
  const { by, atMs, threadId } = fact.forgotten;
  const forgotten = { by: by.name, on: new Date(atMs).toISOString(), in: threadId ?? "the console" };
  return JSON.stringify({ fact: fact.id, kind: fact.kind, from: fact.by.name, on, forgotten });
}

/** [A9] A fact as operators see it: of what somebody told in a conversation of their own they see that it is there. */
export function factLine(fact: Fact): FactLine {
  const { id, kind, source, place, by, atMs, threadId, triggerId, used, usedMs, replacedBy, forgotten } = fact;
  const audience = factAudience(fact);
  const audible = mayFlow(audience, operatorAudience);
  const shown = audible && forgotten === undefined;
  return {
    ...{ id, kind, source, place, atMs },
    text: shown ? fact.text : null,
    reach: audience === teamAudience ? "team" : audience === webAudience(by.id) ? "own" : "place",
    by: { role: by.role, name: by.name },
    told: audible ? { threadId, triggerId } : null,
    used: used === undefined ? null : { times: used, lastMs: usedMs ?? atMs },
    ...(replacedBy === undefined ? {} : { replacedBy }),
    ...(forgotten === undefined ? {} : { forgotten: { by: forgotten.by.name, atMs: forgotten.atMs } }),
  };
}

/** [RD17] After something was forgotten the router's mind begins anew: past the segment of a turn under way, also of one that begins another. */
export const withoutWords = (meta: RouterMeta): RouterMeta => ({
  ...meta,
  segments: { ...meta.segments, team: meta.segments.team + 2 },
  forgotTurn: meta.underWay?.turn ?? meta.turn,
});

/** Something that can be found by words. */
export type MemoryEntry = {
  id: string;
  kind: FoundKind;
  /** Whose text this is: the team's, or made from public text. */
  lane: Lane;
  /** Who could read it where it was said; empty when it is for the whole team. */
  audience: string;
  threadId: string;
  title: string;
  body: string;
  /** Changes while `body` stays. */
  tail: string;
  atMs: number;
};

/** Words to look for, of one kind or of all; without words all of that kind. */
export type FindQuery = { query: string; kind?: FoundKind | undefined; page: number };

/** What may be found: what a conversation of the turn may hear, in the public lane what belongs to the threads at hand; operators find all but the facts of others' own conversations. */
export type FindScope = { lane: "team"; readers: readonly string[] } | { lane: "public"; threads: string[] } | { lane: "all" };

export const scopeOf = (lane: Lane, items: readonly InboxItem[], readers: readonly string[]): FindScope =>
  lane === "team" ? { lane, readers } : { lane, threads: [...new Set(items.map((item) => item.threadId))] };

// Scripts without spaces between words: each sign is a word of its own in the index, and a word is a phrase of signs.
const signs = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/gu;
const signRun = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]+$/u;

/** [RI7] A text as the index reads it. */
export const spaced = (text: string): string => text.replace(signs, " $& ");

const common = new Set(
  "a an the of to in on at by for and or not is are was were be been it its this that these those i you we they he she my our your me us do does did done can could would should will shall please with as from about what which who when where why how again der die das und oder ist sind ein eine zu mit von für auf im am es ich du wir sie nicht bitte".split(
    " ",
  ),
);

/** The words of a text that say something, each once; of a run of signs its pairs. */
export function termsOf(text: string): string[] {
  const found: string[] = [];
  for (const [run] of text.toLowerCase().matchAll(/[\p{L}\p{M}\p{N}_]+/gu)) {
    for (const part of run.split(
      /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]+)/u,
    )) {
      if (part === "") continue;
      if (signRun.test(part)) {
        const all = Array.from(part);
        if (all.length < 3) found.push(part);
        else for (let i = 0; i + 1 < all.length; i++) found.push(`${all[i]}${all[i + 1]}`);
      } else if (part.length > 1 && !common.has(part)) found.push(part);
    }
  }
  return [...new Set(found)];
}

/** [RI7] Terms as a full-text query: each is quoted, so that none is read as an operator. Empty when nothing is left to look for. */
export const matchOf = (terms: readonly string[], join: "AND" | "OR", prefix = false): string =>
  terms
    .slice(0, maxTerms)
    .map((term) => `"${spaced(term).replaceAll('"', " ").trim()}"${prefix && !signRun.test(term) ? "*" : ""}`)
    .join(` ${join} `);

/** The beginning of a sentence, as its repetitions begin: a phrase to look for, or empty where it is no sentence. */
export function phraseOf(text: string): string {
  const words = spaced(text).match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.length < 2 ? "" : `"${words.slice(0, 8).join(" ")}"`;
}

/** The words by which facts for a turn are looked up: long words say more than short ones. */
export const turnTerms = (items: readonly InboxItem[]): string[] =>
  termsOf(
    items
      .map((item) =>
        item.kind === "trigger" ? `${item.trigger.threadTitle} ${item.trigger.place} ${item.trigger.text}` : item.report.title,
      )
      .map((text) => text.slice(0, 2_000))
      .join("\n"),
  )
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
    .slice(0, maxTerms);

/** [RI8] Facts enter a turn of the team's lane only, most relevant first, within their cap. */
export function capFacts(lane: Lane, facts: readonly Fact[]): Fact[] {
  if (lane !== "team") return [];
  const kept: Fact[] = [];
  let chars = 0;
  for (const fact of facts) {
    chars += fact.text.length + 60;
    if (kept.length >= maxFacts || chars > maxFactChars) break;
    kept.push(fact);
  }
  return kept;
}

export const factsItem = (facts: readonly Fact[]): RouterItem => ({
  item: "facts",
  list: facts.map(({ id, kind, text, by, atMs }) => ({ id, kind, text, from: excerpt(by.name, 60), on: dateOf(atMs) })),
});

export const dateOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);

/** A task as it is found: by what was asked, and by what came of it. */
export const taskEntry = (task: KnownTask, goal: string | null): Omit<MemoryEntry, "body"> & { body: string | null } => ({
  id: task.id,
  kind: "task",
  lane: task.tainted ? "public" : "team",
  // What nobody asked for is of no thread: only the team finds it.
  threadId: task.speculative ? "" : task.threadId,
  audience: task.audience,
  title: task.title,
  body: goal,
  tail: `${task.source} ${task.place} ${task.status} ${task.line}`,
  atMs: task.updatedMs,
});

/** Decisions that people ask about later; what was only kept or passed over is none. */
const told: readonly string[] = ["dispatch", "reply", "ask_human", "deliver", "cancel", "resolve", "set_policy", "schedule"];

export function decisionEntry(
  event: Extract<RouterEvent, { kind: "router.decision" }>,
  audience: string,
  atMs: number,
): MemoryEntry | null {
  if (!told.includes(event.tool)) return null;
  return {
    id: event.decisionId,
    kind: "decision",
    lane: event.lane,
    threadId: event.threadId ?? "",
    audience,
    title: event.tool,
    body: event.reason,
    tail: event.taskId ?? "",
    atMs,
  };
}

/** A thread by its title. Whoever opened it wrote that; it counts as the team's only where this is known. */
export function threadEntry(item: QueuedTrigger, atMs: number): MemoryEntry {
  const { trigger } = item;
  const known = hasKnownTitle(trigger);
  return {
    id: trigger.threadId,
    kind: "thread",
    lane: known ? laneOfTrigger(trigger) : "public",
    threadId: trigger.threadId,
    audience: audienceOf(trigger),
    title: excerpt(trigger.threadTitle, 200),
    body: `${trigger.source} ${trigger.place}${trigger.source === "web" ? "" : ` ${trigger.threadKey}`}`,
    tail: "",
    atMs,
  };
}

/** [RI8] What is found, as lines for a model. In the team's lane public text is an id: recall reads it, at its price. */
export function renderFound({ query, kind, page }: FindQuery, found: { hits: readonly MemoryEntry[]; total: number }, lane: Lane): string {
  const about = { find: excerpt(query, 200), ...(kind === undefined ? {} : { kind }) };
  const head = { ...about, page, pages: Math.max(1, Math.ceil(found.total / hitsPerPage)), found: found.total };
  const lines = found.hits.map((hit) => {
    const shown = lane === "public" || hit.lane === "team";
    const where = hit.threadId === "" || hit.threadId === hit.id ? {} : { thread: hit.threadId };
    return {
      id: hit.id,
      kind: hit.kind,
      on: dateOf(hit.atMs),
      ...where,
      ...(shown
        ? hit.kind === "fact"
          ? { title: hit.title, text: excerpt(hit.body.replace(/\s+/g, " ").trim(), 240), from: excerpt(hit.tail, 60) }
          : { title: hit.title, text: excerpt(`${hit.body} ${hit.tail}`.replace(/\s+/g, " ").trim(), 240) }
        : { title: "(not from the team)" }),
    };
  });
  return [head, ...lines].map((line) => JSON.stringify(line)).join("\n");
}

/** [RI9] Which of the inlined ids the calls of a turn used: named in a call, beside the ids that it settles. */
export function usedIds(inlined: readonly string[], calls: ModelReply["calls"]): string[] {
  const said = calls.map(({ input }) => {
    if (typeof input !== "object" || input === null) return "";
    const { settles: _, ...rest } = input as Record<string, unknown>;
    return JSON.stringify(rest);
  });
  return inlined.filter((id) => said.some((text) => text.includes(id)));
}

export const addFigures = (before: ContextFigures, turn: { inlined: number; used: number; reads: number }): ContextFigures => ({
  turns: before.turns + 1,
  withoutRead: before.withoutRead + (turn.reads === 0 ? 1 : 0),
  inlined: before.inlined + turn.inlined,
  used: before.used + turn.used,
});
