// [W14] What a worker says in a chat is short: rewritten once by its own model, then cut, with all of it beside.
import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import type { ThreadRow } from "../../src/protocol/thread.ts";
import {
  begin,
  done,
  events,
  newTask,
  objects,
  reports,
  requests,
  script,
  type TestTask,
  until,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

const long = (word: string): string => `${Array.from({ length: 149 }, (_, i) => `${word}${i}`).join(" ")}.`;

const outbound = (task: TestTask) =>
  until("what was said", async () => {
    const { rows } = await objects.THREAD.getByName(task.threadId).read({ afterSeq: 0, limit: 50 });
    const said = rows.filter((row): row is Extract<ThreadRow, { kind: "outbound" }> => row.kind === "outbound");
    return said.length > 0 ? said.map((row) => row.outbound) : null;
  });

/** In a thread that is its own: only there is said what it reports. */
async function beginInOwn(task: TestTask): Promise<void> {
  await begin(task);
  await objects.THREAD.getByName(task.threadId).subscribe({ taskId: task.taskId, decisionId: task.start.decisionId });
}

test("[W14] a long result is asked for once more by the same model, over a crash in the middle of it, and people read the short one", async () => {
  const before = newTask();
  await script(before, [done(long("first")), { ...done("Short and clear."), delayMs: 60_000 }, done("Short and clear.")]);
  await beginInOwn(before);
  await untilRequests(before, 2);
  await abortAllDurableObjects();
  const task = { ...before, stub: objects.WORKER_SESSION.getByName(before.taskId) };
  await task.stub.poke();
  await untilStatus(task, "done");
  expect((await reports(task)).map(({ text }) => text)).toEqual(["Short and clear."]);
  const [, second, third] = await requests(task);
  expect(second?.at(-1)?.content ?? JSON.stringify(second)).toBeDefined();
  expect(JSON.stringify(second)).toContain("too long: 149 words, and people read at most 100 here");
  // The lost rewrite was made again, with the same bytes, and not asked for a second time.
  expect(JSON.stringify(third)).toBe(JSON.stringify(second));
  const tools = await events(task, "task.tool");
  expect(tools.filter(({ phase, detail }) => phase === "refused" && detail.startsWith("too long")).length).toBe(1);
  expect((await events(task, "task.model")).filter(({ phase }) => phase === "settle")).toHaveLength(2);
  expect(await outbound(task)).toMatchObject([{ text: "Short and clear." }]);
  expect((await outbound(task))[0]).not.toHaveProperty("fullText");
});

test("[W14] what is still too long is cut at a sentence, and all of it is one click away in that thread alone", async () => {
  const task = newTask();
  const second = `${Array.from({ length: 20 }, (_, i) => `Sentence number ${i} says this and that and more.`).join(" ")}`;
  await script(task, [done(long("first")), done(second)]);
  await beginInOwn(task);
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  const [said] = await outbound(task);
  expect(said?.text.split(/\s+/).length).toBeLessThanOrEqual(limits.maxInstantWords);
  expect(said?.text).toMatch(/more\.\n\n\(Shortened\.\)$/);
  expect(said?.fullText).toBe(second);
  expect((await requests(task)).length).toBe(2);
});
