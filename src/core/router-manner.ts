// What the router says on a platform of documents is put into form by code: its words first, then what this step did about the matter,
// what is asked of the reader, and where to look.
import type { Report } from "../protocol/task.ts";
import { mannerOf } from "./manners.ts";
import type { InboxItem, KnownTask } from "./router.ts";
import { type Destination, whereAsked, whereReported } from "./router-destination.ts";
import type { PlannedDecision } from "./router-plan.ts";
import { replyText } from "./structured.ts";

type View = { tasks: ReadonlyMap<string, KnownTask>; items: ReadonlyMap<string, InboxItem> };

/** Where an item's answer goes. */
export const placeOf = (view: Pick<View, "tasks">, item: InboxItem): Destination =>
  item.kind === "trigger" ? whereAsked(item.trigger) : whereReported(item.report, view.tasks.get(item.report.taskId));

/** A source that nobody knows may be a conversation: its words stay as they are. */
const isDocument = (source: string): boolean => source !== "" && mannerOf(source) === "structured";

/** What a reader may do about a report, where that is certain. */
function askedBy({ kind, taskId }: Pick<Report, "kind" | "taskId">): string[] {
  switch (kind) {
    case "question":
    case "blocked":
      return [`Answer in this thread: the task \`${taskId}\` waits for it, and goes on with what you write.`];
    case "proposal":
      return [`Release or decline it, on the page of the task \`${taskId}\` in the console.`];
    case "progress":
    case "answer":
    case "done":
    case "failed":
    case "cancelled":
    case "paused":
    case "waiting":
    case "notice":
    case "overdue":
      return [];
  }
}

/** [RD13] The text of a report as it is said in its thread. */
export const reportInForm = (report: Pick<Report, "kind" | "taskId">, source: string, text: string): string =>
  isDocument(source) ? replyText(text, { done: [], asked: askedBy(report), links: [] }) : text;

/**
 * [RD13] The words of a step in form. What they say was done is what the step's other decisions about the same items do; words about a
 * report keep what the report says that ran.
 */
export const inForm = (view: View, decisions: readonly PlannedDecision[]): PlannedDecision[] =>
  decisions.map((decision) => {
    const items = decision.settles.flatMap((id) => view.items.get(id) ?? []);
    const first = items[0];
    const says = decision.by === "model" && decision.effects.some((effect) => effect.kind === "post");
    if (!says || first === undefined || !isDocument(placeOf(view, first).source)) return decision;
    const matter = decisions.filter(
      (other) =>
        other.by === "model" && other.lane === "team" && (other === decision || other.settles.some((id) => decision.settles.includes(id))),
    );
    // The acknowledgement of a dispatch says that it began; a reply beside it need not say it again.
    const acknowledged = (other: PlannedDecision): boolean => other !== decision && other.effects.some((effect) => effect.kind === "post");
    const done = matter.filter((other) => !acknowledged(other)).flatMap((other) => doneBy(other, first.threadId));
    const links = answeredIn(items);
    const report = items.flatMap((item) => (item.kind === "report" ? [item.report] : []))[0];
    return {
      ...decision,
      effects: decision.effects.map((effect) => {
        if (effect.kind !== "post" || effect.input.kind === "notice") return effect;
        const asked = report === undefined ? [] : askedBy(report);
        // A report that is passed on has its own sections.
        const about = decision.tool === "reply" && report !== undefined ? { about: report.text } : {};
        return { ...effect, input: { ...effect.input, text: replyText(effect.input.text, { done, asked, ...about, links }) } };
      }),
    };
  });

/** What an act did, for its readers. A task of another conversation is its id, nothing more. */
function doneBy(decision: PlannedDecision, threadId: string): string[] {
  const { tool, taskId = "", newTask, schedule } = decision;
  const task = newTask?.threads.includes(threadId) ? `the task “${newTask.title}” (\`${taskId}\`)` : `the task \`${taskId}\``;
  switch (tool) {
    case "dispatch":
      return newTask === undefined || decision.speculation !== undefined
        ? []
        : [`${decision.adopted === undefined ? "Started" : "Took over"} ${task}.`];
    case "deliver":
      return [`Passed it on to ${task}.`];
    case "cancel":
      return [`Asked ${task} to stop.`];
    case "resolve":
      return decision.effects.flatMap((effect) => {
        if (effect.kind === "accept") return [`Noted the outcome of ${task} as ${effect.input.accepted ? "accepted" : "rejected"}.`];
        return effect.kind === "reopen" ? [`Set ${task} to work again.`] : [];
      });
    case "release":
      return decision.effects.flatMap((effect) =>
        effect.kind === "decide_offer"
          ? [`${effect.input.verdict === "release" ? "Released" : "Declined"} \`${effect.input.outboundId}\`.`]
          : [],
      );
    case "schedule":
      return schedule === undefined ? [] : [`The schedule “${schedule.schedule.name}” is ${schedule.what}.`];
    case "remember":
      // What is forgotten is said by itself, with its words.
      return decision.fact === undefined ? [] : ["Kept it in the team's memory."];
    case "ask_human":
      return ["Asked the team's operators."];
    case "reply":
    case "relay":
    case "record":
    case "ignore":
    case "set_policy":
    case "recall":
    case "find":
      return [];
  }
}

/** A reply to several messages says which; one to a single message stands below it. */
function answeredIn(items: readonly InboxItem[]): string[] {
  const urls = items
    .filter((item) => item.kind === "trigger")
    .flatMap(({ trigger }) => (trigger.facts?.url === undefined ? [] : [trigger.facts.url]));
  const several = [...new Set(urls)];
  return several.length < 2 ? [] : several.map((url) => `In answer to ${url}`);
}
