// What tests of a Thread need: triggers of their own, the object by its id, and its log.
import { vi } from "vitest";
import { childId, makeId, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { Logged, ThreadEvent } from "../../src/protocol/events.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { ThreadRpc } from "../../src/protocol/rpc.ts";
import type { TaskCard } from "../../src/protocol/task.ts";
import type { OutboundIntent } from "../../src/protocol/thread.ts";
import type { Outcome, Trigger, Verdict } from "../../src/protocol/trigger.ts";
import { bindings } from "./widget-page.ts";

const member: Principal = { role: "member", id: "ana", name: "Ana" };
export const stranger: Principal = { role: "public", id: "stranger", name: "Stranger" };

export const uniqueName = (): string => crypto.randomUUID().slice(0, 12).replaceAll("-", "");

/** An issue that no other test touches. */
export function issue(): { threadId: string; place: string; threadKey: string } {
  const place = `acme/${uniqueName()}`;
  return { threadId: threadIdOf("github", place, "issue:1"), place, threadKey: "issue:1" };
}

export function triggerIn(
  where: { threadId: string; place: string; threadKey: string },
  deliveryId: string,
  more: Partial<Trigger> = {},
): Trigger {
  return {
    id: triggerIdOf("github", deliveryId, where.threadId),
    source: "github",
    deliveryId,
    ...where,
    threadTitle: "An issue",
    kind: "issue_comment.created",
    principal: member,
    addressed: true,
    text: `text of ${deliveryId}`,
    atMs: Date.now(),
    hops: 0,
    ...more,
  };
}

export const verdict = (outcome: Outcome): Verdict => ({ outcome, rule: `rule.${outcome}`, reason: "a test" });

/** An answer to something of its thread, or what a task says. */
export const intent = (threadId: string, more: Partial<OutboundIntent> = {}): OutboundIntent => ({
  id: makeId("out", uniqueName()),
  threadId,
  ...(more.taskId === undefined ? { triggerId: childId("trg", threadId, "asked") } : {}),
  kind: "reply",
  text: "Understood.",
  decisionId: "dec_test",
  hops: 1,
  ...more,
});

export const cardOf = (taskId: string, threadId: string, revision: number, line = `step ${revision}`): TaskCard => ({
  taskId,
  threadId,
  title: "A task",
  status: "running",
  line,
  modelCalls: revision,
  startedMs: 1,
  updatedMs: revision,
  revision,
});

export const threadOf = (threadId: string): ThreadRpc => bindings.THREAD.getByName(threadId);
/** The same object for the test runner's own functions, which want the platform's type of it. */
export const stubOf = (threadId: string): DurableObjectStub => bindings.THREAD.getByName(threadId) as unknown as DurableObjectStub;

export async function eventsOf<K extends ThreadEvent["kind"]>(
  threadId: string,
  kind: K,
): Promise<(Logged & { event: Extract<ThreadEvent, { kind: K }> })[]> {
  const events = await threadOf(threadId).events({ afterSeq: 0, limit: 10_000 });
  return events.flatMap((logged) =>
    logged.event.kind === kind ? [{ ...logged, event: logged.event as Extract<ThreadEvent, { kind: K }> }] : [],
  );
}

/** Only the clock of deadlines moves: timers stay real. */
export async function at<T>(ms: number, work: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ["Date"], now: ms });
  try {
    return await work();
  } finally {
    vi.useRealTimers();
  }
}
