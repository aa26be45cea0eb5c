import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { readConfig } from "../../src/env.ts";
import { owner } from "../support/router-fixtures.ts";
import { append, decided, decisions, type Lab, newLab, objects, saidIn, say, settled } from "./router-lab.ts";

/** The router decides with the model that needs no key: from its next life on, it makes its model when it wakes. */
async function useOffline(lab: Lab): Promise<void> {
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
