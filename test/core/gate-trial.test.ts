import { describe, expect, test } from "vitest";
import { keepRecent, toRecent, tryRules } from "../../src/core/gate-trial.ts";
import type { RecentTrigger } from "../../src/protocol/console.ts";
import type { GateRule } from "../../src/protocol/gate.ts";

const recent = (id: string, more: Partial<RecentTrigger> = {}): RecentTrigger => ({
  id,
  threadId: "thr_a",
  source: "github",
  place: "acme/app",
  kind: "push",
  principal: { role: "member", id: "dev", name: "dev" },
  addressed: false,
  text: "",
  atMs: 1,
  rule: "noise",
  ...more,
});
const rule = (id: string, more: Partial<GateRule>): GateRule => ({ id, outcome: "ignore", reason: "because", ...more });
const share = { max: 10, maxOfRule: 4 };

describe("the ring of recent triggers", () => {
  test("[G4] ten thousand events of one rule keep their share, and the three of others stay", () => {
    let kept: RecentTrigger[] = [];
    for (const id of ["a", "b", "c"]) kept = keepRecent(kept, recent(id, { rule: "said" }), share);
    for (let i = 0; i < 10_000; i++) kept = keepRecent(kept, recent(`n${i}`), share);
    expect(kept.map(({ id }) => id)).toEqual(["a", "b", "c", "n9996", "n9997", "n9998", "n9999"]);
  });

  test("[G4] it holds no more than its size, and the oldest goes first; a repeat is kept once", () => {
    let kept: RecentTrigger[] = [];
    for (let i = 0; i < 30; i++) kept = keepRecent(kept, recent(`t${i}`, { rule: `r${i}` }), share);
    expect(kept.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, i) => `t${i + 20}`));
    kept = keepRecent(kept, recent("t22", { rule: "r22" }), share);
    expect(kept).toHaveLength(10);
    expect(kept.at(-1)?.id).toBe("t22");
  });

  test("a text is kept from its beginning, and no half character ends it", () => {
    const trigger = { ...recent("x"), deliveryId: "d", threadKey: "k", threadTitle: "t", hops: 0, text: `x${"🎉".repeat(2_000)}` };
    const kept = toRecent(trigger, { outcome: "record", rule: "r", reason: "" });
    expect(kept.text.length).toBeLessThanOrEqual(1_000);
    expect(kept.text.isWellFormed()).toBe(true);
  });
});

describe("trying rules", () => {
  test("[G5] it says for each recent trigger what would change, and which rules match nothing", () => {
    const inForce = { version: 3, rules: [rule("all", { outcome: "record" })] };
    const proposed = {
      version: 4,
      rules: [
        rule("ci", { outcome: "request", kind: "check_run.*", facts: { conclusion: "failure" } }),
        rule("never", { source: "mail" }),
        rule("all", { outcome: "record" }),
      ],
    };
    const failed = recent("f", { kind: "check_run.completed", facts: { conclusion: "failure" } });
    const trial = tryRules(inForce, proposed, [recent("p"), failed]);
    expect(trial).toMatchObject({
      tried: 2,
      before: { ignore: 0, record: 2, candidate: 0, request: 0 },
      after: { record: 1, request: 1 },
      matched: { ci: 1, all: 1 },
    });
    expect(trial.changed).toEqual([
      {
        trigger: failed,
        before: { outcome: "record", rule: "all", reason: "because" },
        after: { outcome: "request", rule: "ci", reason: "because" },
      },
    ]);
  });
});
