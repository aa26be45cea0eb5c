import { describe, expect, test } from "vitest";
import { defaultRules, judge } from "../../src/core/gate.ts";
import { playFast, triggerOf } from "../eval/lib/fast.ts";
import { figuresOf, maxFalseProactive } from "../eval/lib/figures.ts";
import { heldOut, readSet, setNames } from "../eval/lib/labelled.ts";
import { becameOf } from "../eval/lib/outcome.ts";

const [far, known] = [heldOut.map((name) => readSet(name)), readSet("known")];
const all = setNames.flatMap((name) => readSet(name));

describe("[Q7] the labelled messages", () => {
  test("are at least 200, half of them by somebody who had not seen the rules", () => {
    expect(all.length).toBeGreaterThanOrEqual(200);
    expect(far.flat().length).toBeGreaterThanOrEqual(known.length);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  });

  test("on GitHub are addressed exactly where they are labelled so", () => {
    const github = all.filter(({ source }) => source === "github");
    expect(github.filter((line) => triggerOf(line).addressed !== line.addressed).map(({ id }) => id)).toEqual([]);
  });

  test("of the known set meet every rule that ships", () => {
    // A chat has the wire of the generic door: what is labelled there is said here as well.
    const said = known.map(triggerOf).flatMap((each) => (each.source === "generic" ? [each, { ...each, source: "chat" }] : [each]));
    const met = new Set(said.map((each) => judge(defaultRules, each).rule.split(":")[0]));
    const shipped = new Set(defaultRules.rules.map(({ id }) => id.split(":")[0]));
    // Our own words never come through a door as ours.
    shipped.delete("own");
    expect([...shipped].filter((rule) => !met.has(rule))).toEqual([]);
  });
});

describe("[Q7] the shipped rules with the offline router", () => {
  test("[G2] speak or act of their own accord in at most 2 % of the messages where silence is right", () => {
    for (const set of [...far, known]) {
      const outcomes = set.map(playFast);
      const { falseProactive, undecided } = figuresOf(outcomes);
      expect(undecided).toBe(0);
      expect(
        falseProactive.share,
        outcomes
          .filter(({ line, became }) => line.expected === "silent" && !line.addressed && became !== "silent")
          .map(({ line }) => line.id)
          .join(),
      ).toBeLessThanOrEqual(maxFalseProactive);
    }
    expect(figuresOf(known.map(playFast)).misheard.lines).toBe(0);
  });

  test("answer or act on what is asked of them, start nothing where words are asked for, and start what they can", () => {
    for (const set of [...far, known]) {
      const { heard, actedForAnswer } = figuresOf(set.map(playFast));
      expect(heard).toBeGreaterThanOrEqual(0.97);
      expect(actedForAnswer).toBe(0);
    }
    const near = figuresOf(known.map(playFast));
    expect(near.act.recall).toBeGreaterThanOrEqual(0.8);
    expect(near.act.precision).toBeGreaterThanOrEqual(0.95);
  });

  test("the strongest of several decisions counts, and a refusal by code is an answer", () => {
    const by = "model" as const;
    expect(
      becameOf([
        { tool: "dispatch", by },
        { tool: "reply", by },
      ]),
    ).toBe("act");
    expect(
      becameOf([
        { tool: "remember", by },
        { tool: "reply", by },
      ]),
    ).toBe("answer");
    expect(
      becameOf([
        { tool: "remember", by },
        { tool: "record", by },
      ]),
    ).toBe("silent");
    expect(becameOf([{ tool: "dispatch", by: "code" }])).toBe("answer");
  });
});
