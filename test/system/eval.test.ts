// The labelled messages through the real doors: that the command's road says what the plain calls of the test suite say.
import { afterAll, beforeAll, expect, test } from "vitest";
import { EvalDeployment } from "../eval/lib/deployment.ts";
import { playFast } from "../eval/lib/fast.ts";
import { type Labelled, readSet, setNames } from "../eval/lib/labelled.ts";
import type { Outcome } from "../eval/lib/outcome.ts";
import { play } from "../eval/lib/play.ts";
import { doorOf } from "../eval/lib/road.ts";

let deployment: EvalDeployment;
beforeAll(async () => {
  deployment = await EvalDeployment.start({ MODEL_PROVIDER: "offline" });
  await deployment.prepare({ rules: null, policies: null });
});
afterAll(() => deployment.stop());

/** The first lines of each door and each of what may be expected there: what the doors do differs, not the words. */
function sample(): Labelled[] {
  const seen = new Map<string, number>();
  return setNames
    .flatMap((name) => readSet(name))
    .filter((line) => {
      const kind = `${doorOf(line)} ${line.expected} ${line.who.role}`;
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
      return seen.get(kind) === 1;
    });
}

test("a message through its real door becomes what the plain calls say, by the same rule", async () => {
  const lines = sample();
  expect(new Set(lines.map(doorOf)).size).toBe(3);
  const real: Outcome[] = [];
  for (const line of lines) real.push(await play(deployment, line, 30_000));
  const shown = ({ line, became, rule }: Outcome) => ({ id: line.id, became, rule });
  const fast = lines.map(playFast).map(shown);
  // A message that the gate ignores leaves no row that would name the rule.
  expect(real.map(shown)).toEqual(fast.map((one, i) => (real[i]?.rule === "ignored at the gate" ? { ...one, rule: real[i].rule } : one)));
});

test("rules and policies that are tried are those that judge", async () => {
  const other = await EvalDeployment.start({ MODEL_PROVIDER: "offline" });
  try {
    const rules = [{ id: "quiet", outcome: "record", reason: "The team tries to be quiet." }];
    await other.prepare({ rules, policies: [{ id: "calm", text: "Be calm.", enabled: true }] });
    const line = readSet("known").find(({ expected }) => expected === "act");
    if (!line) throw new Error("The known set asks for no act.");
    expect(await play(other, line, 30_000)).toMatchObject({ became: "silent", rule: "quiet" });
    const { policies } = await other.console<{ policies: { id: string }[] }>("GET", "policies");
    expect(policies.map(({ id }) => id)).toEqual(["calm"]);
  } finally {
    await other.stop();
  }
});
