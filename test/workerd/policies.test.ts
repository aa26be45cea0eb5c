import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { routerName } from "../../src/env.ts";
import type { DecisionAnswer, PoliciesAnswer } from "../../src/protocol/console.ts";
import type { Logged, ThreadEvent } from "../../src/protocol/events.ts";
import type { SavedPolicy } from "../../src/protocol/policy.ts";
import type { SpeculationAnswer } from "../../src/protocol/speculation.ts";
import { policiesInForce, savePolicy } from "../../src/storage/policies.ts";
import { carryOutPolicy } from "../../src/storage/policy-acts.ts";
import { guest, member } from "../support/router-fixtures.ts";
import { asOperator, bindings, ok, request } from "./console-support.ts";
import { bodies, decided, newLab, objects, say, script } from "./router-lab.ts";
import { eventually, invite, Page, session } from "./widget-page.ts";

const save = (input: object) => asOperator("POST", "policies", input);
const quiet = { id: "quiet-bots", version: 0, text: "Stop reacting to dependabot.", enabled: true };

test("nobody sees or changes policies, or marks a decision, without the operator's token", async () => {
  expect((await request("/api/console/policies")).status).toBe(401);
  for (const path of ["policies", "decisions/dec_abc/mark"])
    expect((await request(`/api/console/${path}`, { method: "POST", body: "{}" })).status).toBe(401);
});

test("a policy is saved as a new version, switched off and on, and whoever edits an old version is told", async () => {
  expect(await ok<SavedPolicy>(save(quiet))).toMatchObject({ ...quiet, version: 1, savedBy: "operator" });
  expect((await save(quiet)).status).toBe(409);
  expect(await ok<SavedPolicy>(save({ ...quiet, version: 1, enabled: false }))).toMatchObject({ version: 2, enabled: false });
  expect(await policiesInForce(bindings.DB, Date.now())).toEqual([]);
  await ok(save({ ...quiet, version: 2, text: "Stop reacting to dependabot and renovate." }));
  expect(await policiesInForce(bindings.DB, Date.now())).toEqual([
    { id: "quiet-bots", version: 3, text: "Stop reacting to dependabot and renovate." },
  ]);
  const { versions } = await ok<{ versions: SavedPolicy[] }>(asOperator("GET", "policies/quiet-bots"));
  expect(versions.map(({ version, enabled }) => [version, enabled])).toEqual([
    [3, true],
    [2, false],
    [1, true],
  ]);
  for (const wrong of [{ ...quiet, id: "No Spaces" }, { ...quiet, text: " " }, { ...quiet, version: -1 }, {}])
    expect((await save(wrong)).status).toBe(400);
  expect((await asOperator("GET", "policies/never")).status).toBe(404);
});

const setting = { places: [{ source: "github", place: "acme/app" }], callsPerTask: 6, callsPerDay: 30, maxWastedCalls: 60 };

test("[SP1] what a policy allows of speculation is saved with it and goes with its switch; what makes no sense is refused", async () => {
  const early = { id: "early", version: 0, text: "Look for causes early.", enabled: false, speculation: setting };
  const { off, recent } = await ok<SpeculationAnswer>(asOperator("GET", "speculation"));
  expect(off).toContain("No policy that is on");
  expect(recent).toEqual([]);
  expect(await ok<SavedPolicy>(save(early))).toMatchObject({ version: 1, enabled: false, speculation: setting });
  expect((await policiesInForce(bindings.DB, Date.now())).some(({ id }) => id === "early")).toBe(false);
  await ok(save({ ...early, version: 1, enabled: true }));
  expect((await policiesInForce(bindings.DB, Date.now())).find(({ id }) => id === "early")?.speculation).toEqual(setting);
  expect((await ok<SpeculationAnswer>(asOperator("GET", "speculation"))).off).toBeNull();
  const { speculation: _, ...without } = early;
  await ok(save({ ...without, version: 2, enabled: true }));
  expect((await policiesInForce(bindings.DB, Date.now())).find(({ id }) => id === "early")?.speculation).toBeUndefined();
  await ok(save({ ...without, version: 3, enabled: false }));
  for (const wrong of [{ places: [] }, { callsPerTask: 0 }, { callsPerDay: 1e9 }, { places: [{ source: "github" }] }])
    expect((await save({ ...early, version: 4, speculation: { ...setting, ...wrong } })).status).toBe(400);
  expect((await request("/api/console/speculation")).status).toBe(401);
});

test("[G10] the router's model reads the policies in both lanes, once until they change, also after an eviction", async () => {
  const lab = await newLab();
  const record = (token: string) => script(token, [{ calls: [{ tool: "record", input: { settles: ["$trg"], reason: "kept" } }] }]);
  const turns = async (token: string): Promise<number> =>
    ((await bodies(token)).at(-1) ?? "").split('{\\"item\\":\\"policies\\"').length - 1;
  for (const [name, by] of [
    [`${lab.token}a`, member],
    [`${lab.token}b`, guest],
  ] as const) {
    await record(name);
    await decided(lab, (await say(lab, { name, by, text: `hello ${name}` })).id);
    expect(await turns(name)).toBe(1);
    expect((await bodies(name)).at(-1)).toContain("Stop reacting to dependabot and renovate.");
  }
  await evictDurableObject(lab.router as never);
  await record(`${lab.token}c`);
  await decided(lab, (await say(lab, { name: `${lab.token}c`, by: member, text: `again ${lab.token}c` })).id);
  expect(await turns(`${lab.token}c`)).toBe(1);
  await ok(save({ ...quiet, version: 3, text: "React to nobody.", enabled: true }));
  await record(`${lab.token}d`);
  await decided(lab, (await say(lab, { name: `${lab.token}d`, by: member, text: `more ${lab.token}d` })).id);
  expect(await turns(`${lab.token}d`)).toBe(2);
});

test("[G9] a decision says which policy it followed and why, a person calls it wrong, and the policy's count shows it", async () => {
  const token = `mark${Date.now()}`;
  const call = { tool: "reply", input: { settles: ["$trg"], text: "Here I am.", policy: "quiet-bots", policyWhy: "It was a bot." } };
  await script(token, [{ calls: [call] }]);
  const router = objects.ROUTER.getByName(routerName);
  const lab = { token, router };
  const trigger = await say(lab, { name: token, by: member, text: `hello ${token}` });
  const { decisionId } = await decided(lab, trigger.id);
  const path = `decisions/${decisionId}`;
  const before = await ok<DecisionAnswer>(asOperator("GET", path));
  expect(before.decision.policy).toEqual({ id: "quiet-bots", version: 4, why: "It was a bot." });
  expect(before.mark).toBeUndefined();
  await ok(asOperator("POST", `${path}/mark`, { wrong: true, note: "Nobody asked." }));
  expect((await ok<DecisionAnswer>(asOperator("GET", path))).mark).toMatchObject({ wrong: true, note: "Nobody asked.", by: "operator" });
  const { marks } = await ok<PoliciesAnswer>(asOperator("GET", "policies"));
  expect(marks).toEqual([{ policyId: "quiet-bots", wrong: 1, marked: 1 }]);
  await ok(asOperator("POST", `${path}/mark`, { wrong: false }));
  expect((await ok<PoliciesAnswer>(asOperator("GET", "policies"))).marks).toEqual([{ policyId: "quiet-bots", wrong: 0, marked: 1 }]);
  expect((await asOperator("POST", "decisions/dec_abcdefghijklmn/mark", { wrong: true })).status).toBe(404);
});

test("[T11] what a policy made the router say is called unwanted in the widget with one press, as in the console; a guest may not, and an answer to a question has no such word", async () => {
  const token = `press${Date.now()}`;
  const call = { tool: "reply", input: { settles: ["$trg"], text: "Here I am.", policy: "quiet-bots", policyWhy: "It was a bot." } };
  await script(`first ${token}`, [{ calls: [call] }]);
  await script(`second ${token}`, [{ calls: [{ tool: "reply", input: { settles: ["$trg"], text: "As you asked." } }] }]);
  const from = await session((await invite("Member")).token);
  const page = await Page.ready(from);
  const answered = async (of: Page, text: string) => {
    of.message(`${text.replace(" ", "-")}`, text);
    const replies = () => of.rows().flatMap(({ row }) => (row.kind === "reply" ? [row] : []));
    const known = replies().length;
    await of.until("the answer", () => replies().length > known);
    return replies().at(-1);
  };
  const proactive = await answered(page, `first ${token}`);
  expect(proactive).toMatchObject({ text: "Here I am.", proactive: true });
  const asked = await answered(page, `second ${token}`);
  expect(asked).not.toHaveProperty("proactive");
  const press = (of: Page, clientMsgId: string, row: { id?: string } | undefined, wrong: boolean) =>
    of.say({ t: "mark", clientMsgId, threadId: page.rootThreadId, of: row?.id, wrong });
  const marksOf = async () =>
    (await ok<PoliciesAnswer>(asOperator("GET", "policies"))).marks
      .filter(({ policyId }) => policyId === "quiet-bots")
      .map(({ wrong }) => wrong);
  const [before = 0] = await marksOf();
  for (let i = 0; i < 2; i++) press(page, "mark-0001", proactive, true);
  await page.acked("mark-0001", 2);
  await eventually("the mark counts", async () => (await marksOf())[0] === before + 1);
  await evictDurableObject(objects.THREAD.getByName(page.rootThreadId) as never);
  const again = await Page.ready(from);
  expect(again.frames.filter((frame) => frame.t === "marked")).toEqual([{ t: "marked", of: proactive?.id, wrong: true }]);
  press(again, "mark-0002", proactive, false);
  await eventually("it is taken back", async () => (await marksOf())[0] === before);
  press(again, "mark-0003", asked, true);
  press(again, "mark-0005", { id: `out_${page.rootThreadId.slice(4)}-aaaaaaaaaa` }, true);
  await again.until("nothing to mark", () => again.frames.filter((frame) => frame.t === "refused").length === 2);
  // What was refused is not in the log, and no page is told of it.
  const marked = (await objects.THREAD.getByName(page.rootThreadId).events({ afterSeq: 0, limit: 500 })) as Logged<ThreadEvent>[];
  expect(marked.flatMap(({ event }) => (event.kind === "thread.marked" ? [event.outboundId] : []))).toEqual([proactive?.id, proactive?.id]);
  const third = await Page.ready(from);
  expect(third.frames.filter((frame) => frame.t === "marked")).toEqual([{ t: "marked", of: proactive?.id, wrong: false }]);
  const stranger = await Page.ready(await session());
  stranger.say({ t: "mark", clientMsgId: "mark-0004", threadId: stranger.rootThreadId, of: proactive?.id, wrong: true });
  await stranger.until("refused", () => stranger.frames.some((frame) => frame.t === "refused"));
  expect([again, stranger].flatMap((each) => each.frames.filter((frame) => frame.t === "refused"))).toMatchObject([
    { clientMsgId: "mark-0003", message: expect.stringContaining("not said unasked") },
    { clientMsgId: "mark-0005", message: expect.stringContaining("Nothing of this id was said") },
    { clientMsgId: "mark-0004", message: "Only members of the team can say what was not wanted." },
  ]);
  expect((await marksOf())[0]).toBe(before);
});

test("while D1 is away the last known policies hold", async () => {
  let away = false;
  const db = new Proxy(bindings.DB, {
    get(target, key) {
      if (away) throw new Error("D1 is away");
      return (Reflect.get(target, key) as (...args: unknown[]) => unknown).bind(target);
    },
  });
  const known = await policiesInForce(db, 1_000);
  away = true;
  expect(known.length).toBeGreaterThan(0);
  expect(await policiesInForce(db, 60_000)).toEqual(known);
});

test("[RD9] an owner whose change cannot be saved hears why, and it is not tried for ever", async () => {
  await bindings.DB.prepare("DELETE FROM policies").run();
  for (let n = 0; n < 30; n++)
    await savePolicy(bindings.DB, { id: `many-${n}`, version: 0, text: "Say nothing.", enabled: true }, "operator", Date.now());
  const change = { id: "one-more", text: "Say nothing." };
  const answer = await carryOutPolicy(bindings.DB, { do: "save_policy", id: "rul_more", change, by: "Ana" }, Date.now());
  expect(answer).toBe("At most 30 policies can be on: switch one off first.");
});
