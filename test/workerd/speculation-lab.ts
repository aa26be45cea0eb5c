// What tests of speculation need: a policy of their own, work that starts by it, its reports, and its ledger.
import { runDurableObjectAlarm } from "cloudflare:test";
import { vi } from "vitest";
import { childId } from "../../src/core/ids.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { SavedIn, Speculation, SpeculationSetting } from "../../src/protocol/speculation.ts";
import type { Report, TaskStart } from "../../src/protocol/task.ts";
import { policiesInForce, savePolicy } from "../../src/storage/policies.ts";
import { member, type TriggerParts, triggerOf } from "../support/router-fixtures.ts";
import { decided, effects, type Lab, objects, rows, say, script, settled } from "./router-lab.ts";

export const setting: SpeculationSetting = {
  places: [{ source: "github", place: "acme/app" }],
  callsPerTask: 5,
  callsPerDay: 12,
  maxWastedCalls: 100,
};

/** A policy of this lab's own. */
export async function allow(lab: Lab, parts: Partial<SpeculationSetting> = {}, savedIn?: SavedIn): Promise<string> {
  await policiesInForce(objects.DB, Date.now());
  const id = `p-${lab.token}`;
  await savePolicy(
    objects.DB,
    { id, version: 0, text: "Look for causes early.", enabled: true, speculation: { ...setting, ...parts } },
    "operator",
    Date.now(),
    savedIn,
  );
  return id;
}

type Wish = { policy: string | undefined; title?: string };
export const dispatch = (trigger: string, { policy, title = "Find the cause" }: Wish) => ({
  calls: [
    {
      tool: "dispatch",
      input: {
        settles: [trigger],
        title,
        goal: "Find it.",
        acknowledge: "On it!",
        speculative: true,
        ...(policy === undefined ? {} : { policy }),
      },
    },
  ],
});
const record = (trigger: string) => ({ calls: [{ tool: "record", input: { settles: [trigger], reason: "kept" } }] });

export const partsOf = (lab: Lab, name: string, by: Principal = member): TriggerParts => ({
  name: `${lab.token}${name}`,
  by,
  thread: `${lab.token}${name}`,
  text: `the login fails ${lab.token}${name}`,
  outcome: "candidate",
  addressed: false,
});

/** A member says something to another, and the router's model would like to start work on it. */
export async function speculate(lab: Lab, name: string, wish: Wish, by: Principal = member) {
  const parts = partsOf(lab, name, by);
  const { id } = triggerOf(parts);
  await script(id, [dispatch(id, wish), record(id)]);
  const trigger = await say(lab, parts);
  return { trigger, decision: await decided(lab, trigger.id) };
}

export const ledgerOf = async (lab: Lab): Promise<Speculation[]> =>
  (await rows<{ body: string }>(lab, "SELECT body FROM speculation ORDER BY started_ms, task_id")).map(
    ({ body }) => JSON.parse(body) as Speculation,
  );
export const rowOf = async (lab: Lab, taskId: string | undefined) => (await ledgerOf(lab)).find((row) => row.taskId === taskId);

export async function startOf(lab: Lab, taskId: string): Promise<TaskStart> {
  const started = (await effects(lab)).find(({ effect }) => effect.kind === "start" && effect.taskId === taskId)?.effect;
  if (started?.kind !== "start") throw new Error("it was not started");
  return started.input;
}

export async function reportOn(lab: Lab, taskId: string, parts: Partial<Report>): Promise<Report> {
  const { title, threadId, authority } = await startOf(lab, taskId);
  return {
    id: childId("rep", taskId, parts.kind ?? "done", parts.text ?? ""),
    taskId,
    title,
    threadId,
    authority,
    kind: "done",
    status: "done",
    text: "It is the cookie.",
    tainted: false,
    atMs: Date.now(),
    spent: { calls: 3, inputTokens: 3000, outputTokens: 300 },
    ...parts,
  };
}

let passedMs = 0;
/** Its deadline has come. */
export async function look(lab: Lab): Promise<void> {
  passedMs += 70_000;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + passedMs });
  await runDurableObjectAlarm(lab.router as never);
  vi.useRealTimers();
  await settled(lab);
}
