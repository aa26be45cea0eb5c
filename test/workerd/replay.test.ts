// [L2] What a mind saw at a step is made again from the rows that it keeps, to the byte.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { Replayed } from "../../src/protocol/rpc.ts";
import { guest, member } from "../support/router-fixtures.ts";
import { asOperator, ok } from "./console-support.ts";
import { bodies, decided, newLab, say, script as scriptRouter, unique } from "./router-lab.ts";
import {
  begin,
  card,
  deliver,
  done,
  enrol,
  events,
  newTask,
  row,
  run,
  script,
  settled,
  until,
  untilCommands,
  untilStatus,
} from "./worker-helpers.ts";

/** The bodies that the model server recorded, oldest first. */
const recorded = async (contains: string): Promise<string[]> =>
  (await (await fetch(`http://model.test/control/requests?contains=${contains}`)).json()) as string[];

test("[L2] each step of a worker: goal, commands with their results, a word of a person, a call that had to be repeated", async () => {
  const task = newTask();
  await enrol(task);
  await script(task, [run("npm test"), { fault: "429", retryAfter: 0 }, run("npm run lint"), done("All pass.")]);
  await deliver(task, row(task, 1, "and lint it too"));
  await begin(task);
  const [first = ""] = await untilCommands(task, 1);
  await task.stub.settle(settled(task, first, "12 passed"));
  const commands = await untilCommands(task, 2);
  await task.stub.settle(settled(task, commands[1] ?? "", "clean"));
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);

  const sent = [...new Set((await recorded(task.token)).filter((body) => body.includes("You are a worker session")))];
  const replayed: Replayed[] = [];
  for (let step = 1; ; step++) {
    const answer = await task.stub.replay({ step });
    if (answer === null) break;
    replayed.push(answer);
    expect(await ok<Replayed>(asOperator("GET", `replay/${task.taskId}?step=${step}`))).toEqual(answer);
  }
  expect(replayed.length).toBeGreaterThanOrEqual(3);
  expect(replayed.map(({ bytes }) => bytes)).toEqual(sent);
  expect(replayed.every(({ model, complete }) => model === "scripted" && complete)).toBe(true);
});

test("[L2] each step of a long life: two compactions and a hand-off later it is still made again to the byte", async () => {
  const task = newTask({ maxModelCalls: 60 });
  const steps = 36;
  const ask = { calls: [{ tool: "report", input: { kind: "question", text: "ready for the next part" } }] };
  const handOn = {
    calls: [{ tool: "hand_off", input: { profile: "researcher", reason: "nothing is left to change", summary: "half is read" } }],
  };
  await script(task, [...Array.from({ length: steps - 2 }, (_, i) => (i === 5 ? handOn : ask)), done("read all")]);
  await begin(task);
  for (let n = 1, calls = 0; ; n++) {
    const now = await until("it asks or is done", async () => {
      const seen = await card(task);
      return seen.status === "done" || (seen.status === "waiting" && seen.modelCalls > calls) ? seen : null;
    });
    if (now.status === "done") break;
    calls = now.modelCalls;
    if (n === 9) await evictDurableObject(task.stub as never);
    await deliver(task, ...[0, 1, 2].map((k) => row(task, n * 10 + k, `part ${n}.${k} ${"lorem ipsum ".repeat(650)}`)));
  }
  await evictDurableObject(task.stub as never);
  expect((await events(task, "task.compacted")).length).toBeGreaterThanOrEqual(2);
  const sent = (await recorded(task.token)).filter((body) => body.includes("You are a worker session"));
  expect(sent.length).toBeGreaterThanOrEqual(steps - 2);
  for (const [i, bytes] of sent.entries()) {
    const answer = await task.stub.replay({ step: i + 1 });
    expect([answer?.bytes === bytes, answer?.complete], `step ${i + 1}`).toEqual([true, true]);
  }
}, 60_000);

test("[L2] each answered step of the router, in both lanes, with reads in between; what is not kept is said", async () => {
  const lab = await newLab();
  const [one, two, three] = [unique(), unique(), unique()];
  await scriptRouter(one, [
    { calls: [{ tool: "recall", input: { id: "thr_nothinghere" } }] },
    { calls: [{ tool: "reply", input: { settles: ["$trg"], text: "Hello." } }] },
  ]);
  await scriptRouter(two, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "a guest says hello" } }] }]);
  const asked = await say(lab, { name: one, by: { ...member, id: `prs_${one}` }, text: `hello ${one}` });
  await decided(lab, asked.id);
  const visitor = await say(lab, { name: two, by: { ...guest, id: `guest-${two}` }, text: `hello ${two}` });
  await decided(lab, visitor.id);
  await scriptRouter(three, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "noted" } }] }]);
  const again = await say(lab, { name: three, by: { ...member, id: `prs_${three}` }, text: `hello ${three}` });
  await decided(lab, again.id);
  await evictDurableObject(lab.router as never);

  const replayed: Replayed[] = [];
  for (let step = 1; ; step++) {
    const answer = await lab.router.replay({ step });
    if (answer === null) break;
    replayed.push(answer);
  }
  const sent = [...new Set([...(await bodies(one)), ...(await bodies(two)), ...(await bodies(three))])];
  expect(replayed.length).toBeGreaterThanOrEqual(4);
  expect(replayed.map(({ bytes }) => bytes).sort()).toEqual(sent.sort());
  expect(replayed.every(({ complete }) => complete)).toBe(true);
});

test("a step that was never taken, and a step that is no number, are answered in a sentence", async () => {
  const task = newTask();
  expect(await task.stub.replay({ step: 1 })).toBeNull();
  const unknown = await asOperator("GET", `replay/${task.taskId}?step=1`);
  expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringContaining("has taken no step 1")]);
  const nonsense = await asOperator("GET", "replay/router?step=none");
  expect([nonsense.status, await nonsense.text()]).toEqual([400, expect.stringContaining("step: must be a whole number")]);
});
