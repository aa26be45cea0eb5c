// Kills workerd (-9) at a named fault point, lets it restart on the same folder, and sees the task answered exactly once.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownerOf } from "../../src/core/ids.ts";
import type { FaultPoint } from "../../src/fault-point.ts";
import { checkHistory } from "../support/history.ts";
import { eventually, System } from "../support/system.ts";

let system: System;
let workspace: string;

beforeAll(async () => {
  system = await System.start();
  workspace = path.join(system.folder, "workspace");
  mkdirSync(workspace);
  await system.daemon(workspace);
});
afterAll(() => system.stop());

/** Asks for a command that appends one line to a file of its own, and resolves with the answer that came in the end. */
async function askAndWait(name: string): Promise<{ taskId: string; topicId: string }> {
  await system.sendSurely(`run \`echo ${name} >> ${name}.log && sleep 0.3 && cat ${name}.log\``);
  return eventually(
    `answer about ${name}`,
    async () => {
      const rows = await system.conversation();
      const answer = rows.find(({ row }) => row.kind === "reply" && row.replyKind === "relay" && row.text.includes(name));
      if (answer?.row.kind !== "reply" || answer.row.taskId === undefined) return undefined;
      return { taskId: answer.row.taskId, topicId: answer.threadId };
    },
    90_000,
  );
}

async function expectOnce(name: string, { taskId, topicId }: { taskId: string; topicId: string }): Promise<void> {
  // Whatever would come a second time has had its chance: the objects are idle again.
  await eventually("idle router", async () => (await system.conversation()).length > 0);
  const rows = await system.conversation();
  const about = rows.filter(({ row }) => row.kind !== "topic" && row.text.includes(name));
  const count = (hold: (row: (typeof about)[number]["row"]) => boolean) => about.filter(({ row }) => hold(row)).length;
  expect(count((row) => row.kind === "message")).toBe(2); // In the root where it was written, and as the topic's first row.
  expect(count((row) => row.kind === "reply" && row.replyKind === "relay")).toBe(1);
  expect(readFileSync(path.join(workspace, `${name}.log`), "utf8")).toBe(`${name}\n`);
  const logs = [
    { object: topicId, kind: "thread" as const, events: await system.events("THREAD", topicId) },
    { object: "router", kind: "router" as const, events: await system.events("ROUTER", "router") },
    { object: taskId, kind: "task" as const, events: await system.events("WORKER_SESSION", taskId) },
  ];
  const command = logs[2]?.events.find(({ event }) => event.kind === "task.tool" && event.commandId !== undefined);
  const commandId = command?.event.kind === "task.tool" ? command.event.commandId : undefined;
  const endpointId = commandId === undefined ? null : ownerOf(commandId, "ep");
  if (endpointId === null) throw new Error("The task has no command in its ledger.");
  const endpoint = { object: endpointId, kind: "endpoint" as const, events: await system.events("ENDPOINT", endpointId) };
  expect(checkHistory([...logs, endpoint])).toEqual([]);
}

const points: FaultPoint[] = [
  "thread.committed",
  "thread.delivered",
  "router.model.called",
  "router.committed",
  "router.effect.applied",
  "worker.started",
  "worker.model.called",
  "worker.model.answered",
  "worker.step.committed",
  "worker.effect.applied",
  "endpoint.queued",
  "endpoint.settled",
  "endpoint.result.handed",
];

describe("[R1][R12][R18][R19] workerd is killed, restarts, and the task is answered exactly once", () => {
  test.each(points)("at %s", async (point) => {
    const name = `kill-${point.replaceAll(".", "-")}`;
    const before = system.faults.fired;
    system.faults.arm(point, 1, () => system.killWorkerd());
    const answer = await askAndWait(name);
    expect(system.faults.fired, `the fault point ${point} was reached`).toBe(before + 1);
    await expectOnce(name, answer);
  });

  // The router's effects one by one: open the topic, attach its card, start, acknowledge, and later the relay.
  test.each([2, 3, 4, 5])("between the router's effects, after the %ith", async (occurrence) => {
    const name = `kill-effect-${occurrence}`;
    const before = system.faults.fired;
    system.faults.arm("router.effect.applied", occurrence, () => system.killWorkerd());
    const answer = await askAndWait(name);
    expect(system.faults.fired).toBe(before + 1);
    await expectOnce(name, answer);
  });

  test.each([1, 2])("in the middle of a running command, %i times: the second while it starts anew", async (kills) => {
    const name = `kill-mid-command-${kills}`;
    await system.sendSurely(`run \`echo ${name} >> ${name}.log && sleep 3 && cat ${name}.log\``);
    await eventually("started command", () => existsSync(path.join(workspace, `${name}.log`)));
    system.killWorkerd();
    for (let more = kills - 1; more > 0; more--) {
      await new Promise((resolve) => setTimeout(resolve, 150));
      system.killWorkerd();
    }
    const answer = await eventually(
      "answer",
      async () => {
        const row = (await system.conversation()).find(
          (entry) => entry.row.kind === "reply" && entry.row.replyKind === "relay" && entry.row.text.includes(name),
        );
        return row?.row.kind === "reply" && row.row.taskId ? { taskId: row.row.taskId, topicId: row.threadId } : undefined;
      },
      60_000,
    );
    await expectOnce(name, answer);
  });
});
