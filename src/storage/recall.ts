// Chain of recall: any object by its id, a page at a time, with the ids of its neighbours. The answer is text for a model.
import { audienceOf, mayReachAny, nobody, offerAudience, taskAudience, threadAudience } from "../core/audience.ts";
import { offerTaints, rowTaints, taints } from "../core/authority.ts";
import { excerpt, markData } from "../core/context.ts";
import { ownerOf } from "../core/ids.ts";
import { notesIdOf, readableNotes, threadOfNotes } from "../core/worker-notes.ts";
import { type Env, routerName } from "../env.ts";
import { asFault, messageOf } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { OfferView } from "../protocol/offer.ts";
import type { Note, Report } from "../protocol/task.ts";
import type { ThreadRow } from "../protocol/thread.ts";
import { withTimeout } from "../timeout.ts";
import { getArtifact } from "./artifacts.ts";

/** `audience`: who may read it (see core/audience.ts); absent for what is no conversation's: machines. */
export type Recalled = { text: string; tainting: boolean; audience?: string };
type Places = Pick<Env, "THREAD" | "WORKER_SESSION" | "ENDPOINT" | "ROUTER" | "STORE">;

/** Sequence numbers that one page of a thread covers; page 1 is the newest. */
const rowsPerPage = 20;
/** Text of one page; the rest of the limit is for ids and JSON. */
const pageChars = limits.inlineResultChars - 1_500;
/** Ten workers with all that they may note. */
const maxThreadNotes = limits.maxNotes * 10;
const rowChars = Math.floor(pageChars / rowsPerPage);

/**
 * Reads the object that owns the row, touches no third one, and never throws: what cannot be read is said in a sentence.
 * With `readers`, only what one of these audiences may hear is shown.
 */
export async function recallObject(objects: Places, input: { id: string; page: number; readers?: readonly string[] }): Promise<Recalled> {
  const page = Math.max(1, Math.floor(input.page));
  try {
    const found = await withTimeout(read(objects, input.id, page, input.readers), limits.recallTimeoutMs, "Its owner");
    if (found === null) return unknown(input.id);
    return input.readers === undefined ? found : shownTo(found, input.id, input.readers);
  } catch (error) {
    if (asFault(error)?.kind === "not_found") return unknown(input.id);
    return { text: `${input.id} could not be read: ${messageOf(error)}`, tainting: false };
  }
}

/** [A8] What was read, when one of the readers may hear it; else a sentence that says nothing of it. */
export const shownTo = (found: Recalled, id: string, readers: readonly string[]): Recalled =>
  found.audience === undefined || mayReachAny(found.audience, readers)
    ? found
    : { text: `${id} belongs to another conversation, and what you say is read elsewhere: it is not shown here.`, tainting: false };

const unknown = (id: string): Recalled => ({ text: `There is nothing with the id ${excerpt(id, 80)}.`, tainting: false });

const noPage = (id: string, page: number): Recalled => ({ text: `${id} has no page ${page}.`, tainting: false });

async function read(objects: Places, id: string, page: number, readers: readonly string[] | undefined): Promise<Recalled | null> {
  switch (id.slice(0, id.indexOf("_"))) {
    case "thr":
      return readThread(objects, id, page);
    case "nts":
      return readNotes(objects, id, page, readers);
    case "trg":
      return readTrigger(objects, id, page);
    case "tsk":
      return readTask(objects, id, page);
    case "rep":
      return readReport(objects, id, page);
    case "seg":
      return readSegment(objects, id, page);
    case "cmd":
      return readCommand(objects, id, page);
    case "art":
      return readArtifact(objects, id, page);
    case "out":
      return readOutbound(objects, id, page);
    case "ep":
      return readMachine(objects, id);
    case "dec":
    case "fct":
    case "sch":
    case "rul":
      return objects.ROUTER.getByName(routerName).recall({ id });
    default:
      return {
        text: `${excerpt(id, 80)} is not an id that can be read; use one that starts with thr_, trg_, tsk_, rep_, cmd_, nts_, seg_, art_, out_, dec_, fct_, sch_, rul_ or ep_.`,
        tainting: false,
      };
  }
}

const lines = (...values: unknown[]): string => values.map((value) => JSON.stringify(value)).join("\n");

async function readThread(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const thread = objects.THREAD.getByName(id);
  const { info } = await thread.read({ afterSeq: 0, limit: 1 });
  if (info.headSeq === 0) return null;
  const newest = info.headSeq - (page - 1) * rowsPerPage;
  if (newest <= 0) return { ...noPage(id, page), audience: threadAudience(info) };
  const oldest = Math.max(0, newest - rowsPerPage);
  const { rows } = await thread.read({ afterSeq: oldest, limit: rowsPerPage });
  const shown = rows.filter((row) => row.seq <= newest);
  const tainting = shown.some(rowTaints);
  const audience = threadAudience(info);
  // The title is the words of whoever opened the thread, who may not be on this page.
  const title = tainting ? { title: info.title } : {};
  const head = {
    thread: id,
    source: info.source,
    place: info.place,
    ...title,
    ...(info.url === undefined ? {} : { url: info.url }),
    page,
    pages: Math.ceil(info.headSeq / rowsPerPage),
    tasks: info.subscribers,
    notes: notesIdOf(id),
    order: "oldest first; page 1 is the newest",
  };
  return { text: lines(head, ...shown.map((row) => rowLine(row, rowChars))), tainting, audience };
}

/** [W16] The notes of a thread's workers, in order, each with whose it is; only those that the reader may hear. */
async function readNotes(objects: Places, id: string, page: number, readers: readonly string[] | undefined): Promise<Recalled | null> {
  const threadId = threadOfNotes(id);
  const thread = objects.THREAD.getByName(threadId);
  const { info } = await thread.read({ afterSeq: 0, limit: 1 });
  if (info.headSeq === 0) return null;
  const kept = await thread.events({ afterSeq: 0, limit: maxThreadNotes, about: id });
  const all = kept.flatMap(({ event }) => (event.kind === "thread.note" ? [event.note] : []));
  const shown = readableNotes(all, readers);
  const whole = lines(
    ...shown.map(({ taskId, n, step, audience: _who, tainted: _tainted, ...note }) => ({ by: taskId, n, step, ...note })),
  );
  const text = slice(whole, page);
  if (text === null) return noPage(id, page);
  const hidden = all.length - shown.length;
  // Every note in it may be said to each reader; so it is one of theirs, and stays in the turn that read it.
  const audience = readers?.[0] ?? threadAudience(info);
  const head = { notes: id, thread: threadId, count: shown.length, ...(hidden === 0 ? {} : { of_other_conversations: hidden }) };
  return {
    text: `${lines({ ...head, page, pages: pagesOf(whole) })}\n${text}`,
    tainting: shown.some(({ tainted }) => tainted),
    audience,
  };
}

function rowLine(row: ThreadRow, chars: number): object {
  switch (row.kind) {
    case "trigger": {
      const { trigger } = row;
      const from = { role: trigger.principal.role, name: trigger.principal.name };
      return { id: trigger.id, seq: row.seq, kind: trigger.kind, from, ...markData(excerpt(trigger.text, chars)) };
    }
    case "outbound": {
      const { outbound } = row;
      return {
        id: outbound.id,
        seq: row.seq,
        kind: "said",
        state: row.state,
        answers: outbound.triggerId,
        task: outbound.taskId,
        report: outbound.reportId,
        text: excerpt(outbound.text, chars),
      };
    }
    case "topic":
      return { seq: row.seq, kind: "topic", thread: row.topicThreadId, task: row.taskId, asked: row.triggerId };
  }
}

async function readTrigger(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const threadId = ownerOf(id, "thr");
  if (threadId === null) return null;
  const row = await objects.THREAD.getByName(threadId).row({ triggerId: id });
  if (row?.kind !== "trigger") return null;
  const { trigger } = row;
  const text = slice(trigger.text, page);
  if (text === null) return noPage(id, page);
  const head = {
    trigger: id,
    thread: threadId,
    seq: row.seq,
    source: trigger.source,
    place: trigger.place,
    kind: trigger.kind,
    from: { role: trigger.principal.role, name: trigger.principal.name },
    at: new Date(trigger.atMs).toISOString(),
    ...(trigger.facts === undefined ? {} : { facts: trigger.facts }),
    ...(trigger.rawArtifact === undefined ? {} : { raw: trigger.rawArtifact }),
    page,
    pages: pagesOf(trigger.text),
  };
  return { text: lines(head, markData(text)), tainting: taints(trigger.principal), audience: audienceOf(trigger) };
}

/** Notes and reports of a task that its first page shows, the newest. */
const firstNotes = 4;
const firstReports = 10;

/** The first page leads on to everything; where it shortens the goal, or leaves out notes or reports, the next ones have all of them. */
async function readTask(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const task = await objects.WORKER_SESSION.getByName(id).describe();
  if (task === null) return null;
  const { start, card, reports, notes } = task;
  const from = { tainting: task.tainted, audience: taskAudience(start) };
  const shown = start.goal.length <= pageChars / 4 && notes.length <= firstNotes && reports.length <= firstReports;
  const all = shown ? "" : lines({ goal: start.goal }, ...notes.map(wholeNote), ...reports.map((report) => reportLine(report, 200)));
  const pages = shown ? 1 : 1 + pagesOf(all);
  if (page > 1) {
    const text = page > pages ? null : slice(all, page - 1);
    return text === null
      ? { ...noPage(id, page), audience: from.audience }
      : { text: `${lines({ task: id, page, pages })}\n${text}`, ...from };
  }
  const head = {
    task: id,
    title: start.title,
    status: card.status,
    ...(card.waitingFor === undefined ? {} : { waitingFor: card.waitingFor }),
    line: card.line,
    thread: start.threadId,
    decision: start.decisionId,
    machine: start.endpoint?.endpointId ?? null,
    modelCalls: card.modelCalls,
    ...(card.offers === undefined ? {} : { proposals: card.offers.map((offer) => offer.id) }),
    at: new Date(start.atMs).toISOString(),
    ...(pages === 1 ? {} : { page, pages }),
  };
  const asked = {
    goal: excerpt(start.goal, pageChars / 4),
    asked: {
      trigger: start.quote.triggerId,
      from: { role: start.quote.from.role, name: start.quote.from.name },
      ...markData(excerpt(start.quote.text, pageChars / 4)),
    },
  };
  return {
    text: lines(
      head,
      asked,
      ...notes.slice(-firstNotes).map(noteLine),
      ...reports.slice(-firstReports).map((report) => reportLine(report, Math.floor(pageChars / 20))),
    ),
    ...from,
  };
}

const wholeNote = ({ kind, text, outcome }: Note): object => ({ note: kind, text, ...(outcome === undefined ? {} : { outcome }) });

const noteLine = ({ kind, text, outcome }: Note): object => ({
  note: kind,
  text: excerpt(text, 100),
  ...(outcome === undefined ? {} : { outcome: excerpt(outcome, 50) }),
});

const reportLine = (report: Report, chars: number): object => ({
  report: report.id,
  kind: report.kind,
  confidence: report.confidence,
  ...(report.offer === undefined ? {} : { proposal: report.offer }),
  at: new Date(report.atMs).toISOString(),
  text: excerpt(report.text, chars),
});

async function readReport(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const taskId = ownerOf(id, "tsk");
  if (taskId === null) return null;
  const task = await objects.WORKER_SESSION.getByName(taskId).describe();
  const report = task?.reports.find((one) => one.id === id);
  if (!task || !report) return null;
  const text = slice(report.text, page);
  if (text === null) return noPage(id, page);
  const head = { ...reportLine(report, 0), task: taskId, thread: report.threadId, page, pages: pagesOf(report.text) };
  return { text: lines({ ...head, text }), tainting: report.tainted, audience: taskAudience(task.start) };
}

async function readSegment(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const taskId = ownerOf(id, "tsk");
  const found = taskId === null ? null : await objects.WORKER_SESSION.getByName(taskId).segment({ id });
  if (taskId === null || found === null) return null;
  const text = slice(found.text, page);
  if (text === null) return noPage(id, page);
  return {
    text: lines({ segment: id, task: taskId, page, pages: pagesOf(found.text), text }),
    tainting: found.tainting,
    audience: found.audience,
  };
}

async function readCommand(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const endpointId = ownerOf(id, "ep");
  if (endpointId === null) return null;
  const offset = (page - 1) * pageChars;
  const output = await objects.ENDPOINT.getByName(endpointId).readOutput({ commandId: id, offset, limit: pageChars });
  if (output === null) return null;
  const { totalBytes, done } = output;
  const head = { command: id, machine: endpointId, totalBytes, done, page, pages: Math.max(1, Math.ceil(totalBytes / pageChars)) };
  // [A9] It says what its task says.
  return { text: lines(head, { output: output.text }), tainting: false, audience: output.audience ?? nobody };
}

async function readOutbound(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const threadId = ownerOf(id, "thr");
  if (threadId === null) return null;
  const thread = objects.THREAD.getByName(threadId);
  const [row, view, { info }] = await Promise.all([
    thread.row({ triggerId: id }),
    thread.offered({ outboundId: id }),
    thread.read({ afterSeq: 0, limit: 1 }),
  ]);
  const said = row?.kind === "outbound" ? row : null;
  const outbound = said?.outbound ?? view?.offer.outbound;
  if (outbound === undefined) return null;
  const text = slice(outbound.text, page);
  if (text === null) return noPage(id, page);
  const { triggerId: answers, taskId: task, reportId: report, decisionId: decision, deed } = outbound;
  const state = said === null ? {} : { seq: said.seq, state: said.state };
  const links = { answers, task, report, decision, page, pages: pagesOf(outbound.text) };
  const head = { [said === null ? "not_said" : "said"]: id, thread: threadId, ...state, ...links, ...(view && proposalOf(view)), deed };
  return {
    text: lines({ ...head, text }),
    tainting: (said !== null && rowTaints(said)) || (view !== null && offerTaints(view.offer)),
    audience: said === null && view !== null ? offerAudience(view.offer) : threadAudience(info),
  };
}

/** How a proposal stands, and whose word on it counted. */
const proposalOf = ({ offer, state, untilMs, decided }: OfferView): object => ({
  proposal: state,
  what: offer.title,
  ...(decided === undefined ? { until: new Date(untilMs).toISOString() } : { decided }),
});

async function readMachine(objects: Places, id: string): Promise<Recalled | null> {
  const machine = await objects.ENDPOINT.getByName(id).describe();
  if (machine === null) return null;
  const { endpointId, ...rest } = machine;
  return { text: lines({ machine: endpointId, ...rest }), tainting: false };
}

async function readArtifact(objects: Places, id: string, page: number): Promise<Recalled | null> {
  const found = await getArtifact(objects.STORE, id);
  if (found === null) return null;
  const { bytes, from } = found;
  const content = new TextDecoder().decode(bytes);
  const text = slice(content, page);
  if (text === null) return noPage(id, page);
  const head = { artifact: id, bytes: bytes.byteLength, page, pages: pagesOf(content) };
  return { text: lines(head, { content: text }), ...(from ?? { audience: nobody, tainting: true }) };
}

const pagesOf = (text: string): number => Math.max(1, Math.ceil(text.length / pageChars));

/** One page of a text, never with half a character at an edge; null past the end. */
function slice(text: string, page: number): string | null {
  if (page > pagesOf(text)) return null;
  return text.slice(edge(text, (page - 1) * pageChars), edge(text, page * pageChars));
}

/** The position itself, or one before it when it would split a surrogate pair. */
function edge(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1);
  return at < text.length && unit >= 0xd800 && unit <= 0xdbff ? at - 1 : at;
}
