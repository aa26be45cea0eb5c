// What a worker reads: inbox rows become items of the next message, within caps; and which of them wake it, weigh, or taint.
import type { WorkerItem } from "../protocol/context-items.ts";
import { limits } from "../protocol/limits.ts";
import { type Trigger, timerKind } from "../protocol/trigger.ts";
import { isPerson, rowTaints } from "./authority.ts";
import { excerpt, markData } from "./context.ts";
import { mannerOf } from "./manners.ts";
import { isOwnPush, ownership } from "./worker-checks.ts";
import type { Change, InboxItem, InboxRow, TaskState, WorkerCommand } from "./worker-state.ts";

/** A schedule speaks for the person who made it. */
const isOfPerson = ({ kind, principal }: Trigger): boolean => kind === timerKind || isPerson(principal);

/** [W3] What the task was asked with is quoted in its goal; our own words wake nobody. Both are no new input. */
export function isContext(item: InboxItem, task: TaskState): boolean {
  if (item.kind !== "row") return false;
  if (item.row.kind !== "trigger") return true;
  const { trigger } = item.row;
  if (isOwnPush(task, item) || ownership(task, item) === "foreign") return true;
  return trigger.id === task.start.quote.triggerId || (trigger.principal.role === "agent" && trigger.kind !== timerKind);
}

/**
 * [W2] A person's row, facts from the router, a shell's result and the last open file result wake a step.
 * Other events wake it only when it has nothing of its own under way.
 */
export function wakes({ key, item }: InboxRow, task: TaskState, open: readonly WorkerCommand[]): boolean {
  if (isContext(item, task) || task.quiet.includes(key)) return false;
  switch (item.kind) {
    case "tell":
    case "offer":
      return true;
    case "child":
      return item.report.kind !== "progress" && item.report.kind !== "waiting";
    case "result":
      return item.tool === "run_command" || item.tool === "push" || !open.some((command) => command.tool !== "run_command");
    case "row": {
      const whose = ownership(task, item);
      if (whose !== null) return whose === "own";
      return (item.row.kind === "trigger" && isOfPerson(item.row.trigger)) || open.length === 0;
    }
  }
}

/** Whether an item brings text of the public lane into the context. */
export function isTainting(item: InboxItem, task?: TaskState): boolean {
  switch (item.kind) {
    case "row":
      // Checks and pushes of its own commits have no words; what only bears its branch's name is not shown.
      if (task !== undefined && ownership(task, item) !== null) return false;
      return rowTaints(item.row);
    case "result":
    case "offer":
      return false;
    case "tell":
      return item.tainted;
    case "child":
      return item.report.tainted;
  }
}

/** The event of an item that entered an inbox; also before the start. */
export function inboxEvent(key: string, item: InboxItem, task?: TaskState): Change["events"][number] {
  return {
    kind: "task.inbox",
    itemId: key,
    item: item.kind === "tell" || item.kind === "offer" ? "notice" : item.kind,
    ...(item.kind === "row" ? { threadId: item.threadId, threadSeq: item.row.seq } : {}),
    tainting: isTainting(item, task),
  };
}

/** What the first message begins with. */
export function goalItem(task: TaskState): WorkerItem {
  const { start } = task;
  const { quote, endpoint } = start;
  return {
    item: "goal",
    task: start.taskId,
    goal: start.goal,
    asked: {
      from: { role: quote.from.role, name: quote.from.name },
      trigger: quote.triggerId,
      ...markData(cut(quote.text, limits.inlineResultChars, quote.triggerId)),
    },
    machine: endpoint === null ? null : { id: endpoint.endpointId, name: endpoint.name, workspaces: endpoint.workspaces },
    authority: start.authority,
    tainted: task.tainted,
    modelCalls: task.allowance,
    ...(start.speculative === true ? { speculative: true } : {}),
    ...(start.parent === undefined && mannerOf(start.source) === "instant" ? { words: limits.maxInstantWords } : {}),
    ...(start.deadlineMs === undefined ? {} : { deadlineMs: start.deadlineMs }),
  };
}

/** Inbox rows as items, oldest first; texts are shortened, longest first, until their sum fits. */
export function itemsOf(rows: readonly InboxRow[], task: TaskState, agentName: string): WorkerItem[] {
  const shown = rows.filter(({ item }) => !(item.kind === "row" && isAsking(item, task)) && ownership(task, item) !== "foreign");
  const texts = fitSum(
    shown.map(({ item }) => ({ text: textOf(item), id: idOf(item) })),
    limits.inlineStepChars,
  );
  return shown.flatMap(({ item }, i) => render(item, texts[i] ?? "", agentName, task));
}

const isAsking = (item: Extract<InboxItem, { kind: "row" }>, task: TaskState): boolean =>
  item.row.kind === "trigger" && item.row.trigger.id === task.start.quote.triggerId;

/** Where all of an item's text can be read. */
function idOf(item: InboxItem): string {
  switch (item.kind) {
    case "tell":
    case "offer":
      return item.id;
    case "child":
      return item.report.id;
    case "result":
      return item.result.output.spilled ? item.result.output.artifactId : item.result.commandId;
    case "row":
      return item.row.kind === "trigger" ? item.row.trigger.id : item.threadId;
  }
}

/** The text of an item that may be shortened, already within the cap of one. */
function textOf(item: InboxItem): string {
  const whole = (text: string): string => cut(text, limits.inlineResultChars, idOf(item));
  switch (item.kind) {
    case "tell":
    case "offer":
      return whole(item.text);
    case "child":
      return whole(item.report.text);
    case "result": {
      const { output } = item.result;
      if (!output.spilled) return whole(output.text);
      const left = Math.max(0, output.totalBytes - output.head.length - output.tail.length);
      return `${output.head}\n[… about ${left} bytes are left out here; recall ${output.artifactId} has all of it …]\n${output.tail}`;
    }
    case "row":
      return item.row.kind === "trigger" ? whole(item.row.trigger.text) : item.row.kind === "outbound" ? whole(item.row.outbound.text) : "";
  }
}

function render(item: InboxItem, text: string, agentName: string, task: TaskState): WorkerItem[] {
  switch (item.kind) {
    case "tell":
      return [{ item: "notice", text: `From ${task.start.parent === undefined ? "the router" : "your parent task"}: ${text}` }];
    case "offer":
      return [{ item: "notice", text }];
    case "child": {
      const { taskId, title, kind, confidence } = item.report;
      return [{ item: "child", task: taskId, title, kind, ...(confidence === undefined ? {} : { confidence }), text }];
    }
    case "result": {
      const { result } = item;
      return [
        {
          item: "result",
          command: result.commandId,
          outcome: result.outcome,
          exit: result.exitCode,
          ...(result.reason === undefined ? {} : { reason: result.reason }),
          ms: result.startedMs === null ? null : result.endedMs - result.startedMs,
          bytes: result.outputBytes,
          ...(result.pushed === undefined ? {} : { pushed: result.pushed }),
          ...(result.kept === undefined ? {} : { kept: result.kept }),
          output: text,
          ...(result.output.spilled ? { artifact: result.output.artifactId } : {}),
        },
      ];
    }
    case "row": {
      const also = item.alsoWith.length === 0 ? {} : { alsoWith: item.alsoWith };
      const place = { item: "row" as const, thread: item.threadId, seq: item.row.seq };
      switch (item.row.kind) {
        case "topic":
          return [];
        case "outbound":
          return [
            { ...place, id: item.row.outbound.id, kind: "said", from: { role: "agent", name: agentName }, ...also, ...markData(text) },
          ];
        case "trigger": {
          const { trigger } = item.row;
          const from = { role: trigger.principal.role, name: trigger.principal.name };
          const facts = trigger.facts === undefined ? {} : { facts: trigger.facts };
          const replaces = trigger.amends === undefined ? {} : { replaces: trigger.amends.triggerId };
          const replyTo = trigger.replyTo === undefined ? {} : { replyTo: excerpt(trigger.replyTo.id, 100) };
          return [
            { ...place, id: trigger.id, kind: rowKind(trigger), from, ...also, ...facts, ...replyTo, ...replaces, ...markData(text) },
          ];
        }
      }
    }
  }
}

/** People's words are messages; checks, pushes and whatever bots bring are events. */
function rowKind(trigger: Trigger): "message" | "event" | "said" {
  if (trigger.principal.role === "agent" && trigger.kind !== timerKind) return "said";
  if (!isOfPerson(trigger)) return "event";
  return /^(check_|workflow_|push|status|timer)/.test(trigger.kind) ? "event" : "message";
}

/** At most `chars` of a text: its head, a mark that says where the rest is, and its tail. */
export function cut(text: string, chars: number, id: string): string {
  if (text.length <= chars) return text;
  const mark = `\n[… ${text.length - chars} characters or more are left out here; recall ${id} has all of it …]\n`;
  const room = Math.max(0, chars - mark.length);
  const head = excerpt(text, Math.ceil(room * 0.6)).slice(0, -1);
  const tailFrom = text.length - Math.floor(room * 0.4);
  const unit = text.charCodeAt(tailFrom);
  return `${head}${mark}${text.slice(unit >= 0xdc00 && unit <= 0xdfff ? tailFrom + 1 : tailFrom)}`;
}

/** Shortens the longest texts to one common length, so that the sum is within `sum`. Short ones stay whole. */
export function fitSum(texts: readonly { text: string; id: string }[], sum: number): string[] {
  const lengths = texts.map(({ text }) => text.length).sort((a, b) => a - b);
  let rest = sum;
  let each = sum;
  for (let i = 0; i < lengths.length; i++) {
    each = Math.floor(rest / (lengths.length - i));
    const length = lengths[i] ?? 0;
    if (length > each) break;
    rest -= length;
  }
  return texts.map(({ text, id }) => cut(text, each, id));
}
