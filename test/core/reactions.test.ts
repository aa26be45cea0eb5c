import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nextLookMs, type Reaction, type SaidOutcome, unjudged, wordsOf } from "../../src/core/reactions.ts";
import { outcomeOf } from "../../src/core/router-plan.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Report, TaskCard } from "../../src/protocol/task.ts";

const minuteMs = 60_000;
let ids = 0;
const reaction = (sign: string, login = "ana", atMs = 0): Reaction => ({ id: ++ids, sign, login, atMs });
const said = (reactions: Reaction[]) => wordsOf(reactions).map(({ login, accepted }) => [login, accepted]);

describe("[W31] a reaction is a word", () => {
  test.each([
    ["👍", true],
    ["🎉", true],
    ["❤️", true],
    ["🚀", true],
    ["👎", false],
    ["😕", false],
    ["😄", null],
    ["👀", null],
    ["", null],
  ])("%s says %s", (sign, accepted) => {
    expect(said([reaction(sign)])).toEqual(accepted === null ? [] : [["ana", accepted]]);
  });

  test("the newest comes first, of each account only the last word, and within one second the one that was given later", () => {
    const mixed = [reaction("👎", "ana", 1_000), reaction("👍", "bo", 3_000), reaction("👍", "ana", 2_000), reaction("👀", "ana", 9_000)];
    expect(said(mixed)).toEqual([
      ["bo", true],
      ["ana", true],
    ]);
    const [first, second] = [reaction("👍"), reaction("👎")];
    for (const order of [
      [first, second],
      [second, first],
    ])
      expect(said(order)).toEqual([["ana", false]]);
  });
});

const outcome = (id: string, taskId: string, more: Partial<SaidOutcome["entry"]> = {}): SaidOutcome => ({
  outbound: { id, taskId },
  entry: { state: "sent", createdMs: 0, providerId: "7", ...more },
});
const card = (taskId: string, more: Partial<TaskCard> = {}) => ({ taskId, status: "done" as const, ...more });
const none = () => false;
const readyIn = (...given: Parameters<typeof unjudged<SaidOutcome>>) =>
  unjudged(...given).map(({ outbound, ready }) => `${outbound.id}${ready ? "" : " later"}`);

describe("[W31] [T14] what is looked at", () => {
  test("of each task its newest outcome, the newest first", () => {
    const all = [outcome("c", "one", { createdMs: 3 }), outcome("a", "one", { createdMs: 1 }), outcome("b", "two", { createdMs: 2 })];
    expect(readyIn(all, [card("one"), card("two", { status: "failed" })], none)).toEqual(["c", "b"]);
    expect(readyIn(all, [card("one"), card("two")], (id) => id === "c")).toEqual(["b"]);
  });

  test("nothing that somebody judged, and nothing that never reached people", () => {
    for (const accepted of [true, false]) expect(readyIn([outcome("a", "one")], [card("one", { accepted })], none)).toEqual([]);
    for (const state of ["failed", "expired"] as const) expect(readyIn([outcome("a", "one", { state })], [card("one")], none)).toEqual([]);
  });

  test("what is on its way, or goes on again, is looked at later", () => {
    expect(readyIn([outcome("a", "one", { state: "pending", providerId: null })], [card("one")], none)).toEqual(["a later"]);
    expect(readyIn([outcome("a", "one")], [card("one", { status: "running" })], none)).toEqual(["a later"]);
    expect(readyIn([outcome("a", "one")], [], none)).toEqual(["a later"]);
  });

  test("only words about an end are an outcome", () => {
    const kinds: Report["kind"][] = ["progress", "answer", "question", "blocked", "cancelled", "paused", "waiting", "notice", "proposal"];
    expect(kinds.map((kind) => outcomeOf({ kind }))).toEqual(kinds.map(() => ({})));
    expect((["done", "failed"] as const).map((kind) => outcomeOf({ kind }))).toEqual([{ outcome: true }, { outcome: true }]);
  });
});

/** The minutes at which a thread looks that says its outcomes at these times; `failed`: how each look ends. */
function looks(saidMs: number[], failed: () => { retryAfterMs?: number } | null): number[] {
  const made: number[] = [];
  for (let nowMs = Math.min(...saidMs) + limits.reactionLooksMs[0]; Number.isFinite(nowMs); ) {
    made.push(nowMs / minuteMs);
    const known = saidMs.filter((atMs) => atMs <= nowMs);
    const news = saidMs.filter((atMs) => atMs > nowMs).map((atMs) => atMs + limits.reactionLooksMs[0]);
    const nextMs = Math.min(nextLookMs(known, nowMs, failed()) ?? Number.POSITIVE_INFINITY, ...news);
    expect(nextMs).toBeGreaterThan(nowMs);
    nowMs = nextMs;
  }
  return made;
}

describe("[T14] when it is looked", () => {
  test("five times within three days, and never again", () => {
    expect(looks([0], () => null)).toEqual([5, 60, 6 * 60, 24 * 60, 3 * 24 * 60]);
    expect(nextLookMs([], 5, null)).toBeNull();
    expect(nextLookMs([], 5, { retryAfterMs: 9 })).toBeNull();
  });

  test("what could not be read is looked at again with growing waits, four days at most", () => {
    const made = looks([0], () => ({}));
    expect(made.length).toBeLessThan(25);
    expect(made[1]).toBe(7.5);
    expect(Math.max(...made)).toBeLessThan(limits.reactionMs / minuteMs);
    // A last look that fails is made up for.
    expect(made.filter((minute) => minute > 3 * 24 * 60)).toEqual([3.5 * 24 * 60]);
  });

  test("[R10] not before the time that was asked for, also where another look is due", () => {
    expect(nextLookMs([0], 5 * minuteMs, { retryAfterMs: 59 * minuteMs })).toBe(64 * minuteMs);
    expect(nextLookMs([0], 59 * minuteMs, { retryAfterMs: 30 * minuteMs })).toBe(89 * minuteMs);
  });

  test("however many outcomes there are, a look costs its share, and looking ends", () => {
    void fc.assert(
      fc.property(
        fc.array(fc.nat(2 * 24 * 60 * minuteMs), { minLength: 1, maxLength: 6 }),
        fc.infiniteStream(fc.option(fc.record({ retryAfterMs: fc.nat(60 * minuteMs) }))),
        (saidMs, faults) => {
          expect(looks(saidMs, () => faults.next().value ?? null).length).toBeLessThan(30 * saidMs.length);
        },
      ),
    );
  });
});
