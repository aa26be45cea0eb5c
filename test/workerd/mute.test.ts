// An owner says “stop reacting to dependabot”: from GitHub's door to the models, and back again.
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { webAudience } from "../../src/core/audience.ts";
import { makeId, threadIdOf } from "../../src/core/ids.ts";
import { type Env, routerName } from "../../src/env.ts";
import type { Logged, RouterEvent } from "../../src/protocol/events.ts";
import { currentRules } from "../../src/storage/gate-rules.ts";
import { recallObject } from "../../src/storage/recall.ts";
import { recentTriggers } from "../../src/storage/recent-triggers.ts";
import { owner, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { commentOn, deliver, person } from "./github-deliveries.ts";
import { scriptModel } from "./router-lab.ts";

const objects = env as unknown as Env;
const token = `mute${Date.now().toString(36)}`;
const place = "mute/app";

type Call = { tool: string; input: object };
/** Bodies of the models' requests, of the router and of workers, that hold a word. */
const requests = async (word: string): Promise<string[]> =>
  (await (await fetch(`http://model.test/control/requests?contains=${word}`)).json()) as string[];

/** A comment of dependabot as GitHub delivers it: the app's account is the comment's author and the sender. */
const dependabotComment = (body: string) => {
  const payload = commentOn(place, { login: "dependabot[bot]", association: "CONTRIBUTOR", body });
  const app = { login: "dependabot[bot]", id: 49699333, type: "Bot", html_url: "https://github.com/apps/dependabot", site_admin: false };
  return { ...payload, sender: app, comment: { ...payload.comment, user: app, performed_via_github_app: null } };
};

/** A pull request of dependabot as GitHub delivers it when it is opened. */
const dependabotPull = (number: number, title: string) => {
  const app = { login: "dependabot[bot]", id: 49699333, type: "Bot", site_admin: false };
  const repo = { full_name: place, id: 7 };
  return {
    action: "opened",
    number,
    repository: repo,
    sender: app,
    pull_request: {
      number,
      id: 9_000 + number,
      title,
      body: `Bumps [left-pad](https://github.com/left-pad/left-pad). ${title}`,
      html_url: `https://github.com/${place}/pull/${number}`,
      user: app,
      author_association: "CONTRIBUTOR",
      draft: false,
      state: "open",
      head: { ref: `dependabot/npm_and_yarn/left-pad-${number}`, sha: "a".repeat(40), repo },
      base: { ref: "main", sha: "b".repeat(40), repo },
    },
  };
};

/** What the owner says in the widget goes to the deployment's router through its thread. */
async function ownerSays(name: string, text: string, call: (settles: string[]) => Call): Promise<string> {
  const trigger = { ...triggerOf({ name: `${token}${name}`, by: { ...owner, id: `prs_${token}` }, text }), kind: "message" };
  await scriptModel(["ask_human", trigger.id], [{ calls: [call([trigger.id])] }]);
  await objects.THREAD.getByName(trigger.threadId).append({
    trigger,
    verdict: { outcome: "request", rule: "web.message", reason: "asked" },
  });
  return until(`the answer to ${name}`, async () => {
    const { rows } = await objects.THREAD.getByName(trigger.threadId).read({ afterSeq: 0, limit: 200 });
    return rows.flatMap((row) => (row.kind === "outbound" && row.outbound.triggerId === trigger.id ? [row.outbound.text] : []))[0];
  });
}
const policy = (input: object) => (settles: string[]) => ({ tool: "set_policy", input: { settles, ...input } });

/** A worker that follows the issue, and waits for what comes next. */
async function followIssue(): Promise<string> {
  const { answer } = await deliver("issue_comment", commentOn(place, { login: "dev", body: `please look after this ${token}` }));
  const threadId = threadIdOf("github", place, "issue:12");
  const [taskId, decisionId] = [makeId("tsk", token), makeId("dec", token)];
  const row = await objects.THREAD.getByName(threadId).row({ triggerId: answer.triggers?.[0]?.id ?? "" });
  if (row?.kind !== "trigger") throw new Error("the comment was not stored");
  const { trigger } = row;
  const wait = { tool: "wait", input: { reason: "" } };
  await scriptModel(
    ["run_command", `Work. ${token}`],
    Array.from({ length: 12 }, () => ({ calls: [wait] })),
  );
  await objects.THREAD.getByName(threadId).subscribe({ taskId, decisionId, triggerId: trigger.id });
  await objects.WORKER_SESSION.getByName(taskId).start({
    taskId,
    decisionId,
    title: "Look after it",
    goal: `Work. ${token}`,
    quote: { triggerId: trigger.id, from: trigger.principal, text: trigger.text },
    authority: "member",
    tainted: false,
    profile: "general",
    endpoint: null,
    threadId,
    source: "github",
    place,
    maxModelCalls: 15,
    atMs: 1,
  });
  await until("the worker's first step", async () => (await requests(`Work. ${token}`.replaceAll(" ", "%20"))).length > 0);
  return threadId;
}

test("[RD9] [G15] [T5] [G5] an owner says “stop reacting to dependabot”, sees what it would have done, confirms: its events reach no model, others do, and undo brings them back", async () => {
  const threadId = await followIssue();
  const said = async (payload: object) => (await deliver("issue_comment", payload)).answer.triggers?.[0];
  // A subscription overrides what the gate ignores: before the mute the worker reads dependabot.
  expect(await said(dependabotComment(`bump ${token}before`))).toMatchObject({ outcome: "accepted", verdict: "ignore" });
  await until("the worker reads dependabot", async () => (await requests(`${token}before`)).length > 0);
  await until("the ring of recent triggers", async () =>
    (await recentTriggers(objects.DB)).some(({ text }) => text.includes(`${token}before`)),
  );

  const version = (await currentRules(objects.DB)).version;
  const preview = await ownerSays(
    "wish",
    "stop reacting to dependabot",
    policy({ outcome: "mute", source: "github", principal: "dependabot" }),
  );
  expect(preview).toContain("Everything by dependabot or dependabot[bot] from github is muted");
  expect(preview).toMatch(/It fits 1 of the last \d+ events and would have changed 1: 1 issue_comment\.created by dependabot\[bot\]/);
  expect(preview).toContain("(ignored → muted)");
  expect(preview).not.toContain(`${token}before`);
  const id = /confirm (rul_[a-z0-9]+)/.exec(preview)?.[1] ?? "";
  expect((await currentRules(objects.DB)).version).toBe(version);
  // [A9] What was proposed is read by its id, in the conversation where it was shown.
  const read = async (reader: string) => (await recallObject(objects, { id, page: 1, readers: [webAudience(reader)] })).text;
  expect(JSON.parse(await read(`prs_${token}`))).toMatchObject({ proposed: id, saved: false, says: expect.stringContaining("is muted") });
  expect(await read("prs_other")).toContain("belongs to another conversation");
  await evictDurableObject(objects.ROUTER.getByName(routerName) as never);
  const saved = await ownerSays("yes", `confirm ${id}`, policy({ confirm: id }));
  // The rule has one name, where it is saved and where it is listed.
  const name = /undo (rul_[a-z0-9]+)/.exec(saved)?.[1] ?? "";
  expect(name).not.toBe("");
  expect(await ownerSays("list", "list policies", policy({ list: true }))).toContain(`- ${name}: Everything by dependabot or`);
  const inForce = await currentRules(objects.DB);
  expect(inForce.version).toBe(version + 1);
  expect(inForce.rules[0]).toMatchObject({ outcome: "mute", principalId: "dependabot" });

  await until("the door knows the rule", async () => (await said(dependabotComment(`probe ${Math.random()}`)))?.verdict === "mute", 20_000);
  const head = (await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 1 })).info.headSeq;
  expect(await said(dependabotComment(`bump ${token}after`))).toMatchObject({ outcome: "ignored", verdict: "mute" });
  const pull = await deliver("pull_request", dependabotPull(41, `${token}pull`));
  expect(pull.answer.triggers).toMatchObject([{ outcome: "ignored", verdict: "mute" }]);
  expect((await objects.THREAD.getByName(threadId).read({ afterSeq: 0, limit: 1 })).info.headSeq).toBe(head);
  // Another program, and a person, are heard as before.
  const renovate = commentOn(place, { login: "renovate[bot]", body: `renovate ${token}other` });
  await said({
    ...renovate,
    sender: person("renovate[bot]", "Bot"),
    comment: { ...renovate.comment, user: person("renovate[bot]", "Bot") },
  });
  expect(await said(commentOn(place, { login: "dev", body: `a person says ${token}human` }))).toMatchObject({ outcome: "accepted" });
  await until("the worker reads the person", async () => (await requests(`${token}human`)).length > 0);
  await until("the worker reads renovate", async () => (await requests(`${token}other`)).length > 0);
  for (const word of [`${token}after`, `${token}pull`]) expect(await requests(word)).toEqual([]);

  expect(await ownerSays("back", `undo ${name}`, policy({ undo: name }))).toContain("Taken back");
  await until("the door forgot it", async () => (await said(dependabotComment(`probe ${Math.random()}`)))?.verdict !== "mute", 20_000);
  await said(dependabotComment(`bump ${token}again`));
  await until("the worker reads dependabot again", async () => (await requests(`${token}again`)).length > 0);
  const decided = (await objects.ROUTER.getByName(routerName).events({ afterSeq: 0, limit: 2000 })) as Logged<RouterEvent>[];
  expect(decided.flatMap(({ event }) => (event.kind === "router.decision" && event.tool === "set_policy" ? [event.reason] : []))).toEqual([
    expect.stringContaining("proposed a rule"),
    expect.stringContaining("saved the rule"),
    "listed the policies",
    `take back the rule ${name}`,
  ]);
});

test("[RD9] an owner writes, switches and takes back a policy in the chat, and lists what there is", async () => {
  const name = `calm-${token.toLowerCase().slice(-8)}`;
  const shown = await ownerSays("p1", `policy ${name}: be quiet at night`, policy({ change: { id: name, text: "Be quiet at night." } }));
  expect(shown).toContain(`a new policy “${name}”, on: “Be quiet at night.”`);
  const id = /confirm (rul_[a-z0-9]+)/.exec(shown)?.[1] ?? "";
  expect(await ownerSays("p2", `confirm ${id}`, policy({ confirm: id }))).toContain(`is on, version 1`);
  const off = await ownerSays("p3", `switch policy ${name} off`, policy({ change: { id: name, on: false } }));
  expect(off).toContain("on → off, with the same words");
  const second = /confirm (rul_[a-z0-9]+)/.exec(off)?.[1] ?? "";
  expect(await ownerSays("p4", `confirm ${second}`, policy({ confirm: second }))).toContain("is off, version 2");
  await evictDurableObject(objects.ROUTER.getByName(routerName) as never);
  expect(await ownerSays("p5", "list policies", policy({ list: true }))).toContain(`${name} (off, version 2): Be quiet at night.`);
  expect(await ownerSays("p6", `undo ${second}`, policy({ undo: second }))).toContain("as it was before");
  expect(await ownerSays("p7", "list policies", policy({ list: true }))).toContain(`${name} (on, version 3)`);
  // An older change can no longer be taken back alone: something came after it.
  expect(await ownerSays("p8", `undo ${id}`, policy({ undo: id }))).toContain("changed again since");
});
