// [L2] What a mind saw at a step is made again from the rows that it keeps, to the byte.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { Replayed } from "../../src/protocol/rpc.ts";
import { guest, member } from "../support/router-fixtures.ts";
import { asOperator, ok } from "./console-support.ts";
import { bodies, decided, newLab, say, script as scriptRouter, unique } from "./router-lab.ts";
import { begin, deliver, done, enrol, newTask, row, run, script, settled, untilCommands, untilStatus } from "./worker-helpers.ts";

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
