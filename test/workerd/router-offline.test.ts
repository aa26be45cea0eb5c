import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, test, vi } from "vitest";
import { readConfig, routerName } from "../../src/env.ts";
import { owner } from "../support/router-fixtures.ts";
import { append, decided, decisions, type Lab, newLab, objects, saidIn, say, settled } from "./router-lab.ts";
import { eventually, invite, Page, session } from "./widget-page.ts";

/** The router decides with the model that needs no key: from its next life on, it makes its model when it wakes. */
async function useOffline(lab: Pick<Lab, "router">): Promise<void> {
  await runInDurableObject(lab.router as never, (instance: never) => {
    Object.assign(readConfig((instance as { env: typeof objects }).env).model.router, { provider: "offline", modelName: "offline" });
  });
  await evictDurableObject(lab.router as never);
}

test("[RI8] without a real model too it says what it remembers, in two steps, and nothing of another's conversation", async () => {
  const lab = await newLab();
  await useOffline(lab);
  const ana = { ...owner, id: `prs_a${lab.token}` };
  const other = { ...owner, id: `prs_b${lab.token}` };
  await decided(lab, (await say(lab, { name: `${lab.token}1`, by: ana, text: "remember that my desk is blue" })).id);
  await decided(lab, (await say(lab, { name: `${lab.token}2`, by: other, text: "remember that my desk is red" })).id);
  await decided(lab, (await say(lab, { name: `${lab.token}3`, by: other, text: "remember for the team that we deploy on Fridays" })).id);
  const asked = await say(lab, { name: `${lab.token}4`, by: ana, text: "What do you remember?" });
  expect((await decided(lab, asked.id)).tool).toBe("reply");
  await settled(lab);
  const answer = (await saidIn(asked.threadId)).at(-1)?.text ?? "";
  expect(answer).toContain("my desk is blue");
  expect(answer).toContain("we deploy on Fridays");
  expect(answer).not.toContain("red");
});

test("[RD17] without a real model too a member has a fact forgotten in the widget: it is named, several are asked about, and it is gone", async () => {
  const here = {
    get router() {
      return objects.ROUTER.getByName(routerName);
    },
  };
  await useOffline(here);
  const page = await Page.ready(await session((await invite("Mia")).token));
  const replies = (): string[] => page.rows().flatMap(({ row }) => (row.kind === "reply" ? [row.text] : []));
  let said = 0;
  const ask = async (text: string): Promise<string> => {
    const known = replies().length;
    page.message(`forgetting-${++said}`, text);
    await page.until(`the answer to ${text}`, () => replies().length > known);
    return replies().at(-1) ?? "";
  };
  for (const fact of ["my desk is blue", "my desk is upstairs", "lunch is at noon"]) await ask(`remember that ${fact}`);
  expect(await ask("forget that my chair is red")).toContain("I remember nothing of that sort");
  const several = await ask("forget about my desk");
  expect(several).toMatch(/^Which one shall I forget\?\n- my desk is (?:blue|upstairs) \(Mia; fct_/);
  await evictDurableObject(here.router as never);
  expect(await ask("forget that my desk is blue")).toMatch(/^I have forgotten what Mia told me on 2.*: “my desk is blue”$/);
  const upstairs = /my desk is upstairs \(Mia; (fct_[a-z0-9-]+)\)/.exec(several)?.[1] ?? "";
  expect(await ask(`forget ${upstairs}`)).toContain("“my desk is upstairs”");
  expect(await ask(`forget ${upstairs}`)).toBe(`I have forgotten nothing. ${upstairs} is forgotten already, on the word of Mia.`);
  await evictDurableObject(here.router as never);
  const left = await ask("what do you remember?");
  expect(left).toContain("lunch is at noon");
  expect(left).not.toContain("desk");
});

test("[RD9] a bare yes after a proposed rule saves nothing and is answered with the line that does", async () => {
  const lab = await newLab();
  await useOffline(lab);
  const by = { ...owner, id: `prs_${lab.token}` };
  const wish = await say(lab, { name: `${lab.token}1`, by, text: "stop reacting to renovate" });
  await decided(lab, wish.id);
  await settled(lab);
  const { trigger, row } = await append({ name: `${lab.token}2`, by, text: "yes" });
  const before = (await objects.THREAD.getByName(wish.threadId).read({ afterSeq: 0, limit: 50 })).rows.filter(({ seq }) => seq < row.seq);
  await lab.router.deliver({ threadId: trigger.threadId, rows: [{ row, alsoWith: [] }], before, tasks: [] });
  expect((await decided(lab, trigger.id)).tool).toBe("reply");
  await settled(lab);
  const [shown = "", told = ""] = (await saidIn(wish.threadId)).map(({ text }) => text);
  expect(shown).toContain("Everything by renovate or renovate[bot] from github is muted");
  const line = /^Say “(confirm rul_[a-z0-9]+)”/.exec(shown)?.[1];
  expect(told).toContain(`Say “${line}”: only that line`);
  expect((await decisions(lab)).map(({ reason }) => reason).join()).not.toContain("saved");
});

test("[RS1] [RS3] [RS6] without a real model too a member sets, lists, changes and ends schedules in the widget, and one that is due is answered there", async () => {
  const here = {
    get router() {
      return objects.ROUTER.getByName(routerName);
    },
  };
  await useOffline(here);
  const page = await Page.ready(await session((await invite("Ana")).token));
  const replies = (): string[] => page.rows().flatMap(({ row }) => (row.kind === "reply" ? [row.text] : []));
  let said = 0;
  const ask = async (text: string): Promise<string> => {
    const known = replies().length;
    page.message(`message-${++said}`, text);
    await page.until(`the answer to ${text}`, () => replies().length > known);
    return replies().at(-1) ?? "";
  };
  const list = async () => (await here.router.schedules()).schedules;
  expect(await ask("every weekday at 9:30 (Europe/Berlin) run the tests")).toContain("Scheduled “run the tests” every weekday at 09:30");
  expect(await ask("every 10 minutes what is going on?")).toContain("Scheduled “what is going on” every 10 minutes");
  expect(await ask("in 2 hours search for “todo”")).toContain("in 2 hours");
  // The same name again takes the place of the first.
  expect(await ask("every 20 minutes what is going on?")).toContain("every 20 minutes");
  expect((await list()).map(({ name, words, state }) => [name, words.replace(/^once at .*/, "once"), state]).sort()).toEqual([
    ["run the tests", "every weekday at 09:30 (Europe/Berlin)", "active"],
    ["search for todo", "once", "active"],
    ["what is going on", "every 20 min", "active"],
  ]);
  await evictDurableObject(here.router as never);
  expect(await ask("list schedules")).toMatch(
    /- run the tests: every weekday at 09:30 \(Europe\/Berlin\), next .*\n- search for todo.*\n- what is going on: every 20 min/,
  );
  expect(await ask("pause schedule run the tests")).toBe("The schedule “run the tests” is paused.");
  expect(await ask("cancel schedule search for todo")).toBe("The schedule “search for todo” is cancelled.");
  expect(await ask("resume schedule nothing like that")).toContain("There is no schedule “nothing like that”.");
  const due = (await list()).find(({ name }) => name === "what is going on");
  const known = replies().length;
  vi.useFakeTimers({ toFake: ["Date"], now: due?.nextMs ?? 0 });
  try {
    await runDurableObjectAlarm(here.router as never);
    await page.until("the answer of the run", () => replies().length > known);
    expect(replies().at(-1)).toContain("Nothing is running.");
    const runs = async () => (await list()).find(({ name }) => name === "what is going on")?.runs ?? [];
    await eventually("its delivery", async () => (await runs())[0]?.delivery === "sent");
    expect(await runs()).toMatchObject([{ execution: "done", dueMs: due?.nextMs }]);
  } finally {
    vi.useRealTimers();
  }
});
