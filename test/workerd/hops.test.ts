// A program that answers our answers, over the real objects of the deployment.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { routerName } from "../../src/env.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import { member, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { objects, script, unique } from "./router-lab.ts";

const decisionOn = async (id: string) =>
  ((await objects.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 5000, about: id })) as Logged<RouterEvent>[]).flatMap(
    ({ event }) => (event.kind === "router.decision" && event.settles.includes(id) ? [event] : []),
  )[0];

test("[T16] a program that answers each of our answers is answered five times; then a human looks, until a person speaks", async () => {
  const token = unique();
  const bot: Principal = { role: "bot", id: `helper-${token}`, name: "helper" };
  let count = 0;
  const say = async (by: Principal): Promise<{ tool: string; by: string }> => {
    const trigger = triggerOf({ name: `${token}-${++count}`, by, thread: token, text: `words ${count} ${token}` });
    await script([trigger.id], [{ calls: [{ tool: "reply", input: { settles: [trigger.id], text: `Answer ${count}.` } }] }]);
    await objects.THREAD.getByName(trigger.threadId).append({
      trigger,
      verdict: { outcome: "candidate", rule: "test", reason: "allowed" },
    });
    const { tool, by: whose } = await until(`a decision on ${count}`, () => decisionOn(trigger.id));
    return { tool, by: whose };
  };
  const thread = () => objects.THREAD.getByName(triggerOf({ name: token, by: bot, thread: token }).threadId);
  const answers = async (): Promise<number> =>
    (await thread().read({ afterSeq: 0, limit: 100 })).rows.filter(({ kind }) => kind === "outbound").length;
  const answered = async (by: Principal, said: number): Promise<void> => {
    expect(await say(by)).toEqual({ tool: "reply", by: "model" });
    await until(`answer ${said}`, async () => (await answers()) === said);
  };

  for (let said = 1; said <= 5; said++) await answered(bot, said);
  await evictDurableObject(thread() as never);
  expect(await say(bot)).toEqual({ tool: "ask_human", by: "code" });
  expect(await say(bot)).toEqual({ tool: "ask_human", by: "code" });
  expect(await answers()).toBe(5);
  await answered(member, 6);
  await answered(bot, 7);
});
