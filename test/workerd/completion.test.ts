import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { member, reportOf, taskOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { append, decisions, events, give, newLab, rows, saidIn, script, settled } from "./router-lab.ts";

test.each([
  ["done", "done", 0.9],
  ["done", "done", 0.2],
  ["failed", "failed", undefined],
  ["cancelled", "cancelled", undefined],
] as const)(
  "[Q17] a task that ends as %s is one row in the router's inbox, acknowledged once it is durable, and one word at most, however often it is told",
  async (kind, status, confidence) => {
    const lab = await newLab();
    const { trigger } = await append({ name: lab.token, by: member, thread: `${lab.token}t`, text: lab.token });
    const task = taskOf(lab.token, { threadId: trigger.threadId, source: "github" });
    await give(trigger.threadId, task.id);
    const report = reportOf({ task, kind, status, text: `It ended ${lab.token}.`, ...(confidence === undefined ? {} : { confidence }) });
    await script(lab.token, [{ calls: [{ tool: "relay", input: { settles: [report.id], report: report.id } }] }]);
    await Promise.all([lab.router.report(report), lab.router.report(report)]);
    await evictDurableObject(lab.router as never);
    await lab.router.report(report);
    const loud = kind !== "cancelled";
    if (loud) await until("the word on it", async () => (await decisions(lab)).some((decision) => decision.settles.includes(report.id)));
    await settled(lab);
    await evictDurableObject(lab.router as never);
    await lab.router.report(report);
    await settled(lab);
    expect((await events(lab)).filter(({ event }) => event.kind === "router.report" && event.report.id === report.id)).toHaveLength(1);
    expect((await decisions(lab)).filter((decision) => decision.settles.includes(report.id))).toHaveLength(loud ? 1 : 0);
    expect(await saidIn(trigger.threadId)).toHaveLength(loud ? 1 : 0);
    const [known] = await rows<{ open: number; body: string }>(lab, `SELECT open, body FROM task WHERE id = '${task.id}'`);
    expect([known?.open, (JSON.parse(known?.body ?? "{}") as { status: string }).status]).toEqual([0, status]);
  },
);
