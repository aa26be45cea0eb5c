import { describe, expect, test } from "vitest";
import { arrivals, freshMeta, type InboxItem, nextTurnMs, noDoubt, pickJoining, pickTurn } from "../../src/core/router.ts";
import { guest, member, queuedReport, queuedTrigger, reportOf, triggerOf } from "../support/router-fixtures.ts";

const none: ReadonlySet<string> = new Set();
const team = queuedTrigger({ name: "a", by: member });
const other = queuedTrigger({ name: "b", by: member, thread: "two" });
const visitor = queuedTrigger({ name: "c", by: guest, thread: "three" });

describe("pickJoining", () => {
  const join = (
    queued: InboxItem[],
    turn: Partial<Parameters<typeof pickJoining>[3]> = {},
    held = none,
    meta: Partial<typeof freshMeta> = {},
  ) =>
    pickJoining(
      queued,
      held,
      { ...freshMeta, ...meta },
      { lane: "team", items: new Map([[team.id, team]]), undecided: 1, step: 1, nowMs: 1000, ...turn },
    );

  test("[RT6] what came meanwhile joins, but for what the turn has and what another lane waits for", () => {
    expect(join([team, other, visitor])).toEqual([other]);
    expect(join([team, visitor])).toEqual([]);
    expect(join([visitor, other], { lane: "public", items: new Map() })).toEqual([]);
    expect(join([visitor], { lane: "public", items: new Map() })).toEqual([visitor]);
  });

  test("[RT6] a held thread, a turn that is isolated, and one without two steps left are joined by nothing", () => {
    expect(join([other], {}, new Set([other.threadId]))).toEqual([]);
    expect(join([other], {}, none, { doubts: { ...freshMeta.doubts, team: { ...noDoubt, width: 1 } } })).toEqual([]);
    expect(join([other], { items: new Map([[team.id, { ...team, tries: 1 }]]) })).toEqual([]);
    expect(join([{ ...other, tries: 1 }])).toEqual([]);
    expect(join([other], { step: 2 })).toEqual([other]);
    expect(join([other], { step: 3 })).toEqual([]);
  });

  test("[RT6] the caps are of the whole turn", () => {
    const many = Array.from({ length: 60 }, (_, i) => queuedTrigger({ name: `m${i}`, by: member, thread: `t${i}` }));
    expect(join(many, { undecided: 15 })).toEqual(many.slice(0, 25));
    const ci = { role: "bot", id: "ci", name: "ci", onBehalfOf: "member" } as const;
    const noise = Array.from({ length: 30 }, (_, i) => queuedTrigger({ name: `ci${i}`, by: ci, thread: `ci${i}` }));
    expect(join([...noise, other], { undecided: 38 })).toEqual([noise[0], other]);
    const long = [1, 2].map((i) => queuedTrigger({ name: `long${i}`, by: member, thread: `l${i}`, text: "x".repeat(8_000) }));
    const full = Array.from({ length: 6 }, (_, i) =>
      queuedTrigger({ name: `f${i}`, by: member, thread: `f${i}`, text: "x".repeat(8_000) }),
    );
    expect(join(long, { items: new Map(full.map((item) => [item.id, item])) })).toEqual(long.slice(0, 1));
  });
});

describe("pickTurn", () => {
  const pick = (queued: InboxItem[], held: ReadonlySet<string> = none, meta: Partial<typeof freshMeta> = {}, nowMs = 1000) =>
    pickTurn(queued, held, { ...freshMeta, ...meta }, nowMs);

  test("[RT4] everything that queued in one lane makes one turn, the team first, lanes never mixed", () => {
    expect(pick([visitor, team, other])).toEqual({ lane: "team", items: [team, other] });
    expect(pick([visitor])).toEqual({ lane: "public", items: [visitor] });
    expect(pick([])).toBeNull();
  });

  test("[RT4] a thread whose dispatch is not applied yet is held back, and only it", () => {
    expect(pick([team, other], new Set([team.threadId]))?.items).toEqual([other]);
  });

  test("[RT2] a report of a tainted team task stands in the public lane", () => {
    const tainted = queuedReport(reportOf({ tainted: true, authority: "member" }));
    const clean = queuedReport(reportOf({ tainted: false, authority: "member" }));
    expect([tainted.lane, clean.lane]).toEqual(["public", "team"]);
  });

  test("[RT4] a turn is capped by items and by tokens, and one large item still gets its turn", () => {
    const many = Array.from({ length: 60 }, (_, i) => queuedTrigger({ name: `n${i}`, by: member }));
    expect(pick(many)?.items).toHaveLength(40);
    const large = Array.from({ length: 20 }, (_, i) => queuedTrigger({ name: `l${i}`, by: member, text: "x".repeat(32_000) }));
    expect(pick(large)?.items).toHaveLength(7);
    // A provider that counts twice as many.
    expect(pick(large, none, { tokenRate: 2 })?.items).toHaveLength(3);
    expect(pick(large.slice(0, 1))?.items).toHaveLength(1);
    // The same characters are four times the tokens in a script without an alphabet.
    const dense = Array.from({ length: 20 }, (_, i) => queuedTrigger({ name: `d${i}`, by: member, text: "語".repeat(32_000) }));
    expect(pick(dense)?.items).toHaveLength(1);
  });

  test("[RT4] where the caps bite, people go before programs, beside what waited longest; what is picked stays in its order", () => {
    const ci = { role: "bot", id: "ci", name: "ci", onBehalfOf: "member" } as const;
    const noise = Array.from({ length: 60 }, (_, i) => queuedTrigger({ name: `ci${i}`, by: ci, thread: `ci${i}` }));
    const people = ["late", "later"].map((name) => queuedTrigger({ name, by: member, thread: name }));
    const picked = pick([...noise, ...people])?.items ?? [];
    expect(picked).toEqual([...noise.slice(0, 38), ...people]);
    const doubts = { ...freshMeta.doubts, team: { ...noDoubt, width: 2 } };
    expect(pick([...noise, ...people], none, { doubts })?.items).toEqual([noise[0], people[0]]);
    expect(pick([...noise.slice(0, 3), ...people])?.items).toEqual([...noise.slice(0, 3), ...people]);
  });

  test("[RT5] during an outage nothing is picked, and a lane that backs off does not hold the other", () => {
    expect(pick([team, visitor], none, { retryAtMs: 2000 })).toBeNull();
    const doubts = { ...freshMeta.doubts, team: { ...noDoubt, failures: 1, untilMs: 2000 } };
    expect(pick([team, visitor], none, { doubts })).toEqual({ lane: "public", items: [visitor] });
    expect(pick([team, visitor], none, { doubts }, 2000)?.items).toEqual([team]);
  });

  test("[RT7] what failed together goes in parts, of its lane only", () => {
    const doubts = { ...freshMeta.doubts, team: { ...noDoubt, width: 1 } };
    expect(pick([team, other, visitor], none, { doubts })?.items).toEqual([team]);
    const guests = ["d", "e"].map((name) => queuedTrigger({ name, by: guest, thread: name }));
    expect(pick(guests, none, { doubts })?.items).toEqual(guests);
  });

  test("[RT7] an item to blame goes alone, after all others, unless it has waited for long", () => {
    const bad = { ...team, tries: 1 };
    expect(pick([bad, other])?.items).toEqual([other]);
    expect(pick([bad, visitor])?.items).toEqual([visitor]);
    expect(pick([bad])?.items).toEqual([bad]);
    expect(pick([bad], none, { apartMs: 2000 })).toBeNull();
    expect(pick([bad, other], none, { apartMs: 2000 }, 62_000)?.items).toEqual([bad]);
    expect(pick([bad, { ...other, tries: 3 }, { ...visitor, tries: 2 }])?.items).toEqual([bad]);
  });

  test("the loop sleeps until the first item may go", () => {
    const meta = { ...freshMeta, retryAtMs: 500, doubts: { ...freshMeta.doubts, team: { ...noDoubt, untilMs: 2000 } }, apartMs: 9000 };
    expect(nextTurnMs([team, visitor], none, meta)).toBe(500);
    expect(nextTurnMs([team], none, meta)).toBe(2000);
    expect(nextTurnMs([{ ...visitor, tries: 1 }], none, meta)).toBe(9000);
    expect(nextTurnMs([visitor, team], new Set([visitor.threadId]), meta)).toBe(2000);
  });
});

describe("arrivals", () => {
  const rowOf = (name: string, seq: number, outcome: "candidate" | "record" = "candidate", hops = 0) => ({
    alsoWith: [],
    row: {
      kind: "trigger" as const,
      seq,
      atMs: 1,
      trigger: { ...triggerOf({ name, by: member }), hops },
      verdict: { outcome, rule: "r", reason: "why" },
    },
  });
  const delivery = { threadId: team.threadId, before: [], tasks: [] };

  test("[RT3] rows up to the cut are a worker's, later ones wait for a decision", () => {
    const result = arrivals({ ...delivery, rows: [rowOf("x", 3), rowOf("y", 4)] }, 3);
    expect(result.map((each) => each.what)).toEqual(["passed", "queue"]);
  });

  test("[R8][RC2] what an ended task gives back is decided, or recorded where the gate asked nobody", () => {
    const rows = [rowOf("x", 1), rowOf("y", 2, "record")];
    expect(arrivals({ ...delivery, rows, releasedBy: "tsk_a" }, 3).map((each) => each.what)).toEqual(["queue", "record"]);
  });

  test("[T16] a message derived of derived messages goes to a human, and is decided when an operator asks", () => {
    const rows = [rowOf("x", 1, "candidate", 5)];
    expect(arrivals({ ...delivery, rows }, 0)[0]?.what).toBe("too_many_hops");
    expect(arrivals({ ...delivery, rows, again: "asked" }, 0)[0]?.what).toBe("queue");
  });
});
