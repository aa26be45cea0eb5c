import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { judge } from "../../src/core/gate.ts";
import { rulesInForce } from "../../src/storage/gate-rules.ts";
import { member, owner, triggerOf } from "../support/router-fixtures.ts";
import { until } from "../support/until.ts";
import { decided, decisions, newLab, objects, rows, saidIn, say, script, settled } from "./router-lab.ts";

const inForce = () => rulesInForce(objects.DB, Date.now() + 60_000);

test("[RD9] an owner says “stop reacting to dependabot”, sees the rule, confirms it, and the gate ignores dependabot", async () => {
  const lab = await newLab();
  const by = { ...owner, id: `prs_${lab.token}` };
  const before = (await inForce()).version;
  const wish = { name: `${lab.token}1`, by, text: `stop reacting to dependabot ${lab.token}` };
  await script(triggerOf(wish).id, [
    {
      calls: [
        { tool: "set_policy", input: { settles: [triggerOf(wish).id], outcome: "ignore", source: "github", principal: "dependabot[bot]" } },
      ],
    },
  ]);
  const asked = await say(lab, wish);
  await decided(lab, asked.id);
  await settled(lab);
  const preview = (await saidIn(asked.threadId))[0]?.text ?? "";
  expect(preview).toContain("Everything by dependabot[bot] from github is ignored");
  const id = /confirm (rul_[a-z0-9]+)/.exec(preview)?.[1] ?? "";
  // A mind that sees only the beginning of our last words sees which line confirms it.
  expect(preview.slice(0, 50)).toContain(`confirm ${id}”`);
  expect((await inForce()).version).toBe(before);
  await evictDurableObject(lab.router as never);

  // The model's word alone saves nothing: the owner has to have said it.
  const vague = { name: `${lab.token}2`, by, text: `hm, nice ${lab.token}` };
  const confirm = (trigger: string) => ({ calls: [{ tool: "set_policy", input: { settles: [trigger], confirm: id } }] });
  await script(triggerOf(vague).id, [
    confirm(triggerOf(vague).id),
    { calls: [{ tool: "record", input: { settles: [triggerOf(vague).id], reason: "no" } }] },
  ]);
  expect((await decided(lab, (await say(lab, vague)).id)).tool).toBe("record");
  expect((await inForce()).version).toBe(before);

  const yes = { name: `${lab.token}3`, by, text: `Confirm ${id}` };
  await script(triggerOf(yes).id, [confirm(triggerOf(yes).id)]);
  await decided(lab, (await say(lab, yes)).id);
  await settled(lab);
  const saved = await until("the next version", async () => {
    const rules = await inForce();
    return rules.version > before && rules;
  });
  expect(saved.version).toBe(before + 1);
  const bot = {
    ...triggerOf({ name: "d", by: { role: "bot", id: "dependabot[bot]", name: "dependabot" }, thread: "x" }),
    kind: "issues.opened",
  };
  expect(judge(saved, bot)).toMatchObject({ outcome: "ignore", rule: saved.rules[0]?.id });
  expect(judge(saved, triggerOf({ name: "p", by: member, thread: "x" })).outcome).not.toBe("ignore");
  expect((await saidIn(asked.threadId)).at(-1)?.text).toContain("Saved");
  expect(await rows(lab, "SELECT id FROM proposal")).toHaveLength(1);
});

test("[RD9] a member cannot change what the gate does, and a rule for everything is refused", async () => {
  const lab = await newLab();
  const wish = { name: lab.token, by: { ...member, id: `prs_${lab.token}` }, text: `ignore everybody ${lab.token}` };
  const { id } = triggerOf(wish);
  await script(id, [{ calls: [{ tool: "set_policy", input: { settles: [id], outcome: "ignore", principal: "x" } }] }]);
  expect(await decided(lab, (await say(lab, wish)).id)).toMatchObject({ by: "code", tool: "set_policy" });
  await settled(lab);
  expect((await saidIn(triggerOf(wish).threadId))[0]?.text).toContain("only an owner");
  const all = { name: `${lab.token}o`, by: { ...owner, id: `prs_o${lab.token}` }, text: `ignore everything ${lab.token}` };
  const own = triggerOf(all).id;
  await script(own, [
    { calls: [{ tool: "set_policy", input: { settles: [own], outcome: "ignore" } }] },
    { calls: [{ tool: "reply", input: { settles: [own], text: "No." } }] },
  ]);
  expect((await decided(lab, (await say(lab, all)).id)).tool).toBe("reply");
  expect((await decisions(lab)).filter((decision) => decision.tool === "set_policy")).toHaveLength(1);
});
