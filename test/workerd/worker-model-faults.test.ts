import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  begin,
  card,
  deliver,
  done,
  events,
  member,
  newTask,
  reports,
  requests,
  row,
  script,
  until,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

test("[R21] a provider that asks us to slow down is asked again with the same bytes, and the card says so", async () => {
  const task = newTask();
  await script(task, [{ fault: "429", retryAfter: 2 }, done("finally")]);
  await begin(task);
  await until("the card says that the model does not answer", async () =>
    (await card(task)).line.startsWith("The model does not answer; trying again in 2 s"),
  );
  await untilStatus(task, "done");
  const [first, second] = await requests(task);
  expect(JSON.stringify(second)).toBe(JSON.stringify(first));
  expect((await card(task)).modelCalls).toBe(1);
});

test("[R21] garbage, an empty choice, twin call ids and a fault of the server are repaired by asking again", async () => {
  const task = newTask();
  await script(task, [{ fault: "garbage" }, { fault: "no_choices" }, { fault: "duplicate_ids" }, { fault: "500" }, done("finally")]);
  await begin(task);
  await untilStatus(task, "done");
  expect((await events(task, "task.model")).filter(({ phase }) => phase === "failed")).toHaveLength(4);
  expect(await events(task, "task.tool")).toHaveLength(1);
});

test("[R21] a refused key fails the task at once, with what is to be fixed, and rows that nobody read go back", async () => {
  const task = newTask();
  await script(task, [{ fault: "401", delayMs: 500 }]);
  await begin(task);
  await deliver(task, row(task, 3, "are you there"));
  await untilStatus(task, "failed");
  expect((await reports(task)).at(-1)?.text).toContain("MODEL_API_KEY is refused");
  expect(await requests(task)).toHaveLength(1);
  expect(await events(task, "task.released")).toMatchObject([{ threadSeqs: [3] }]);
});

test("[W28][Q13] a row that the model's provider refuses ends in a choice; the task goes on without it, and says where it stands", async () => {
  const task = newTask();
  const bad = `refused${task.token}`;
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which one?" } }] }, done("finally")]);
  await fetch("http://model.test/control/script", {
    method: "POST",
    body: JSON.stringify({ when: [bad, "You are a worker session"], replies: Array.from({ length: 9 }, () => ({ fault: "400" })) }),
  });
  await begin(task);
  await untilStatus(task, "waiting");
  await deliver(task, row(task, 4, `this one: ${bad}`));
  await untilStatus(task, "paused");
  expect((await reports(task)).at(-1)).toMatchObject({
    kind: "paused",
    text: expect.stringMatching(/content policy.*Continue without what came last, or stop\?$/),
  });
  const asked = (await requests(task)).length;
  await evictDurableObject(task.stub as never);
  await task.stub.poke();
  expect((await card(task)).status).toBe("paused");
  expect(await requests(task)).toHaveLength(asked);
  await task.stub.resume({ by: member, modelCalls: 5 });
  await untilStatus(task, "done");
  const last = JSON.stringify((await requests(task)).at(-1));
  expect(last).not.toContain(bad);
  expect(last).toContain(`row 4 of ${task.threadId}`);
  expect((await requests(task)).filter((each) => JSON.stringify(each).includes(bad))).toHaveLength(1);
});

test.each([
  ["400", "paused", "I cannot go on. The model refused the request. Continue without what came last, or stop?", "content policy"],
  [
    "401",
    "failed",
    "The model cannot be used, so I stopped. The model refuses us access. Operators see it in the console; once it is mended, tell me to try again.",
    "MODEL_API_KEY is refused by model.test",
  ],
] as const)(
  "[A11] after %s a task that was asked for at a place is %s, and the provider's words are in its log alone",
  async (fault, status, text, detail) => {
    const task = newTask({ source: "github", place: "acme/app" });
    await script(task, [{ fault }]);
    await begin(task);
    await untilStatus(task, status);
    await evictDurableObject(task.stub as never);
    expect((await reports(task)).at(-1)?.text).toBe(text);
    expect(JSON.stringify([await reports(task), await card(task)])).not.toMatch(/content policy|MODEL_API_KEY|model\.test/);
    const logged = (await events(task, "task.model")).find(({ phase }) => phase === "failed");
    expect(logged).toMatchObject({ error: expect.stringContaining(detail) });
  },
);

test("[R21] while a call hangs the object takes rows, and after an eviction the call is made again", async () => {
  const task = newTask();
  await script(task, [{ fault: "429", retryAfter: 1 }, done("finally"), done("finally, with the row")]);
  await begin(task);
  await until("a retry is planned", async () => (await card(task)).line.startsWith("The model does not answer"));
  await deliver(task, row(task, 1, "a row in between"));
  await evictDurableObject(task.stub as never);
  await untilStatus(task, "done");
  expect(JSON.stringify((await requests(task)).at(-1))).toContain("a row in between");
});

test("[R6] while a call hangs, rows are taken, the task is described and can be stopped", async () => {
  const task = newTask();
  await script(task, [{ fault: "hang" }]);
  await begin(task);
  await untilRequests(task, 1);
  expect(await deliver(task, row(task, 4, "hello?"))).toEqual({ throughSeq: 4 });
  expect(await card(task)).toMatchObject({ status: "running" });
  expect(await task.stub.cancel({ by: member, reason: "it hangs" })).toEqual({ status: "cancelled" });
});

test("[W12] an answer that cannot be kept is a failed call, with its wait and its end, and the task goes on when it can be", async () => {
  const task = newTask();
  await script(task, [{ calls: [{ tool: "note", input: { kind: "fact", text: "one" } }], delayMs: 300 }, done("finally")]);
  await begin(task);
  await untilRequests(task, 1);
  const rename = (from: string, to: string) =>
    runInDurableObject(
      task.stub as never,
      (_: unknown, state: DurableObjectState) => void state.storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`),
    );
  await rename("call", "hidden");
  const failed = await until("the call has failed", async () => (await events(task, "task.model")).find(({ phase }) => phase === "failed"));
  expect(failed.error).toContain("could not be kept");
  await rename("hidden", "call");
  await evictDurableObject(task.stub as never);
  await untilStatus(task, "done");
  expect(await requests(task)).toHaveLength(2);
});
