import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { ProfileAnswer, ProfilesAnswer, TaskAnswer } from "../../src/protocol/console.ts";
import { asOperator, ok } from "./console-support.ts";
import { begin, deliver, done, member, newTask, row, run, script, untilStatus } from "./worker-helpers.ts";

const list = async () => (await ok<ProfilesAnswer>(asOperator("GET", "profiles"))).profiles;

test("the shipped profiles are listed, and a changed one is a version of its own that new tasks work under", async () => {
  expect((await list()).map(({ name, version }) => [name, version])).toEqual([
    ["coder", 0],
    ["general", 0],
    ["researcher", 0],
    ["triager", 0],
  ]);
  const triager = (await list()).find(({ name }) => name === "triager");
  if (!triager) throw new Error("no triager");
  const edited = { ...triager, prompt: "Sort it in one line.", modelCalls: 4 };
  const { profile } = await ok<ProfileAnswer>(asOperator("POST", "profiles", edited));
  expect(profile.version).toBe(1);
  const again = await asOperator("POST", "profiles", edited);
  expect(again.status).toBe(409);
  const strange = await asOperator("POST", "profiles", { ...profile, tools: ["launch_rocket"] });
  expect(await strange.text()).toContain("There is no tool");
  const base = newTask();
  const task = { ...base, start: { ...base.start, profile: "triager" } };
  await script(task, [run("make"), done("sorted")]);
  await begin(task);
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  expect(await task.stub.describe()).toMatchObject({ profile: "triager", allowance: 4 });
  const bodies = (await (await fetch(`http://model.test/control/requests?contains=${task.token}`)).json()) as string[];
  expect(bodies.some((body) => body.includes("Sort it in one line."))).toBe(true);
  expect(bodies.some((body) => body.includes("run_command is not a tool of the profile triager"))).toBe(true);
});

test("the console shows a task's queued messages, removes one, and says when it is too late", async () => {
  const task = newTask();
  await script(task, [{ calls: [{ tool: "report", input: { kind: "question", text: "Which?" } }] }, done("x")]);
  await begin(task);
  await untilStatus(task, "waiting");
  await deliver(task, row(task, 1, "then lint", member, { mode: "queue" }));
  const read = () => ok<TaskAnswer>(asOperator("GET", `tasks/${task.taskId}`));
  const [item] = (await read()).backlog;
  expect(item).toMatchObject({ text: "then lint", from: "member" });
  const path = `tasks/${task.taskId}/backlog/${item?.itemId}`;
  await ok(asOperator("POST", path, { change: "edit", text: "then lint all" }));
  expect((await read()).backlog[0]?.text).toBe("then lint all");
  await ok(asOperator("POST", path, { change: "withdraw" }));
  expect((await read()).backlog).toEqual([]);
  expect((await asOperator("POST", path, { change: "now" })).status).toBe(409);
});
