import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { asOperator, ok } from "./console-support.ts";
import { begin, done, newTask, objects, requests, row, script, untilStatus } from "./worker-helpers.ts";

const progress = { calls: [{ tool: "report", input: { kind: "progress", text: "still at it" } }] };

test("[W29] an operator continues a task that paused, and no other", async () => {
  const task = newTask({ maxModelCalls: 2 });
  await script(task, [progress, progress, done("finished")]);
  await begin(task);
  await untilStatus(task, "paused");
  await evictDurableObject(task.stub as never);
  await ok(asOperator("POST", `tasks/${task.taskId}/continue`));
  await untilStatus(task, "done");
  expect(await requests(task)).toHaveLength(3);
  for (const what of ["continue", "again"]) {
    const refused = await asOperator("POST", `tasks/${task.taskId}/${what}`);
    expect([what, refused.status]).toEqual([what, 409]);
    expect((await refused.json<{ message: string }>()).message).toMatch(
      /^Only a task that (?:paused is continued|failed is tried again)\.$/,
    );
  }
});

test("[WI8] to a task that failed an operator says once that it should try again, in its own thread", async () => {
  const task = newTask();
  await script(task, [{ text: "hello" }, { text: "is anybody there" }, { text: "hm" }]);
  const asked = row(task, 1, "run the tests");
  if (asked.row.kind !== "trigger") throw new Error("this row is a message");
  const thread = objects.THREAD.getByName(task.threadId);
  await thread.append({ trigger: asked.row.trigger, verdict: { outcome: "record", rule: "r", reason: "r" } });
  await begin(task);
  await untilStatus(task, "failed");
  const again = () => ok<{ triggerId: string; outcome: string }>(asOperator("POST", `tasks/${task.taskId}/again`));
  const first = await again();
  expect(first.outcome).toBe("accepted");
  await evictDurableObject(thread as never);
  expect(await again()).toEqual({ triggerId: first.triggerId, outcome: "duplicate" });
  const { rows } = await thread.read({ afterSeq: 0, limit: 50 });
  const said = rows.flatMap((each) => (each.kind === "trigger" && each.trigger.principal.id === "operator" ? [each] : []));
  expect(said).toMatchObject([{ trigger: { id: first.triggerId, text: "Try again." }, verdict: { outcome: "request", rule: "console" } }]);

  const child = newTask({ parent: { taskId: task.taskId, depth: 1 } });
  await script(child, [{ text: "hello" }, { text: "is anybody there" }, { text: "hm" }]);
  await begin(child);
  await untilStatus(child, "failed");
  const refused = await asOperator("POST", `tasks/${child.taskId}/again`);
  expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining(`try that again, ${task.taskId}`)]);
});
