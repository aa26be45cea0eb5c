// A long life: hundreds of decisions, segments that begin anew, and one item that is far too large.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { estimateTokens } from "../../src/core/context.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Trigger } from "../../src/protocol/trigger.ts";
import { member, type TriggerParts, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { bodies, decided, decisions, messagesOf, newLab, rows, say, script } from "./router-lab.ts";

const batches = 17;
const batchSize = 30;

test("[RI1] [RI5] [L2] over 500 decisions the prefix of a segment is the same bytes, a new one begins with what was decided, and every raw row stays", async () => {
  const lab = await newLab();
  const triggers: Trigger[] = [];
  for (let batch = 0; batch < batches; batch++) {
    const own = Array.from({ length: batchSize }, (_, n): Trigger => {
      const parts: TriggerParts = {
        name: `${lab.token}b${batch}n${n}`,
        by: { ...member, id: `prs_${lab.token}` },
        thread: `${lab.token}t${batch}`,
        text: `item ${n} of batch ${batch} ${lab.token} ${"words ".repeat(230)}`,
      };
      return triggerOf(parts);
    });
    triggers.push(...own);
    const calls = own.map(({ id }, n) => ({ tool: "record", input: { settles: [id], reason: `kept ${n} of batch ${batch}` } }));
    await script(own[0]?.id ?? "", [{ calls }]);
    const delivered = own.map((trigger, n) => ({
      row: { kind: "trigger" as const, seq: n + 1, atMs: 1, trigger, verdict: { outcome: "request" as const, rule: "t", reason: "t" } },
      alsoWith: [],
    }));
    await lab.router.deliver({ threadId: own[0]?.threadId ?? "", rows: delivered, before: [], tasks: [] });
    await until(`batch ${batch}`, async () => (await lab.router.overview()).turn === batch + 1);
    if (batch % 5 === 4) await evictDurableObject(lab.router as never);
  }
  const requests = (await bodies(lab.token)).map((body) => messagesOf(body));
  expect(requests).toHaveLength(batches);
  // [L2] Also what was sent before a segment began anew can be made again.
  const sent = await bodies(lab.token);
  for (const step of [1, 2, Math.ceil(batches / 2), batches - 1, batches])
    expect(await lab.router.replay({ step })).toMatchObject({ bytes: sent[step - 1], complete: true });
  let segments = 1;
  for (let i = 1; i < requests.length; i++) {
    const [before, now] = [requests[i - 1] ?? [], requests[i] ?? []];
    const continued = JSON.stringify(now.slice(0, before.length)) === JSON.stringify(before);
    if (continued) continue;
    segments += 1;
    // The system's words, and one message: what was decided before, then what waits.
    expect(now).toHaveLength(2);
    expect(now[0]).toEqual(before[0]);
    expect(now[1]?.content).toContain('{"item":"summary"');
    expect(now[1]?.content).toContain(`kept ${batchSize - 1} of batch ${i - 1}`);
  }
  expect(segments).toBeGreaterThan(3);
  for (const messages of requests)
    expect(estimateTokens(JSON.stringify(messages.slice(0, -1)))).toBeLessThan(limits.compactRouterTokens * 1.5);
  const kept: Extract<RouterEvent, { kind: "router.decision" }>[] = [];
  for (let afterSeq = 0; ; ) {
    const page = (await lab.router.events({ afterSeq, limit: 500 })) as Logged<RouterEvent>[];
    if (page.length === 0) break;
    kept.push(...page.flatMap(({ event }) => (event.kind === "router.decision" ? [event] : [])));
    afterSeq = page.at(-1)?.seq ?? afterSeq;
  }
  expect(kept).toHaveLength(batches * batchSize);
  expect(kept.length).toBeGreaterThan(500);
  expect(new Set(kept.flatMap((decision) => decision.settles))).toEqual(new Set(triggers.map(({ id }) => id)));
  // The raw rows of closed segments are there, each body as it was sent.
  const raw = await rows<{ segment: number; body: string }>(lab, "SELECT segment, body FROM transcript ORDER BY seq");
  expect(new Set(raw.map(({ segment }) => segment)).size).toBe(segments);
  const first = raw.filter(({ segment }) => segment === 1).map(({ body }) => JSON.parse(body) as { role: string; text?: string });
  expect(first[0]).toMatchObject({ role: "user", text: requests[0]?.at(-1)?.content });
  expect(raw.filter(({ body }) => body.includes(`item ${batchSize - 1} of batch 0`))).toHaveLength(1);
}, 60_000);

test("[RT4] an oversized trigger is shortened, and blocks nobody that waits with it", async () => {
  const lab = await newLab();
  const by = { ...member, id: `prs_${lab.token}` };
  const large: TriggerParts = { name: `${lab.token}large`, by, text: `large ${lab.token} ${"x".repeat(31_000)}` };
  const small: TriggerParts = { name: `${lab.token}small`, by, thread: lab.token, text: `small ${lab.token}` };
  const reply = (parts: TriggerParts) => ({ tool: "reply", input: { settles: [triggerOf(parts).id], text: `Answer to ${parts.name}.` } });
  // Busy first, so that both queue for one turn.
  await script(`busy ${lab.token}`, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "busy" } }], delayMs: 300 }]);
  await say(lab, {
    name: `${lab.token}busy`,
    by: { ...by, id: `prs_busy${lab.token}` },
    thread: `${lab.token}busy`,
    text: `busy ${lab.token}`,
  });
  await until("the busy call", async () => (await bodies(`busy ${lab.token}`)).length === 1);
  await script([`small ${lab.token}`], [{ calls: [reply(large), reply(small)] }]);
  const [first, second] = [await say(lab, large), await say(lab, small)];
  expect((await decided(lab, first.id)).turn).toBe((await decided(lab, second.id)).turn);
  const shown = messagesOf((await bodies(`small ${lab.token}`)).at(-1)).at(-1)?.content ?? "";
  expect(shown.length).toBeLessThan(12_000);
  expect(shown).toContain('"truncated":true');
});

test("[RM3] [RT4] one item that the model never settles goes to a human alone: those beside it are decided in the first turn", async () => {
  const lab = await newLab();
  const by = { ...member, id: `prs_${lab.token}` };
  const stuck: TriggerParts = { name: `${lab.token}stuck`, by, text: `stuck ${lab.token}` };
  const easy: TriggerParts = { name: `${lab.token}easy`, by, thread: lab.token, text: `easy ${lab.token}` };
  await script(`busy ${lab.token}`, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "busy" } }], delayMs: 300 }]);
  await say(lab, {
    name: `${lab.token}busy`,
    by: { ...by, id: `prs_busy${lab.token}` },
    thread: `${lab.token}busy`,
    text: `busy ${lab.token}`,
  });
  await until("the busy call", async () => (await bodies(`busy ${lab.token}`)).length === 1);
  await script(
    [`stuck ${lab.token}`, `easy ${lab.token}`],
    [{ calls: [{ tool: "record", input: { settles: [triggerOf(easy).id], reason: "ok" } }] }, { text: "Hm." }, { text: "Hm." }],
  );
  const [hard, soft] = [await say(lab, stuck), await say(lab, easy)];
  const settledEasy = await decided(lab, soft.id);
  const escalated = await decided(lab, hard.id);
  expect(settledEasy).toMatchObject({ tool: "record", by: "model", turn: 2 });
  expect(escalated).toMatchObject({ tool: "ask_human", by: "code" });
  expect((await decisions(lab)).filter((decision) => decision.settles.includes(soft.id))).toHaveLength(1);
});
