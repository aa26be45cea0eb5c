import { describe, expect, test } from "vitest";
import { arrivals, freshMeta, type InboxItem, pickJoining, pickTurn, planModelFault, threadsToTell } from "../../src/core/router.ts";
import { Fault } from "../../src/protocol/fault.ts";
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
    expect(join([other], {}, none, { isolate: true })).toEqual([]);
    expect(join([other], { step: 2 })).toEqual([other]);
    expect(join([other], { step: 3 })).toEqual([]);
  });

  test("[RT6] the caps are of the whole turn", () => {
    const many = Array.from({ length: 60 }, (_, i) => queuedTrigger({ name: `m${i}`, by: member, thread: `t${i}` }));
    expect(join(many, { undecided: 15 })).toEqual(many.slice(0, 25));
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
    expect(pick(large.slice(0, 1))?.items).toHaveLength(1);
    // The same characters are four times the tokens in a script without an alphabet.
    const dense = Array.from({ length: 20 }, (_, i) => queuedTrigger({ name: `d${i}`, by: member, text: "語".repeat(32_000) }));
    expect(pick(dense)?.items).toHaveLength(1);
  });

  test("during a back-off nothing is picked; after a refusal that no waiting heals a new message is tried at once", () => {
    expect(pick([team], none, { retryAtMs: 2000, lastRetry: "later" })).toBeNull();
    const failed = { ...team, tries: 1 };
    expect(pick([failed, other], none, { retryAtMs: 2000, lastRetry: "never" })?.items).toEqual([other]);
    expect(pick([failed], none, { retryAtMs: 2000, lastRetry: "never" }, 2000)?.items).toEqual([failed]);
  });

  test("while one item is refused by the model, each gets a turn of its own, the refused one last", () => {
    expect(pick([{ ...team, tries: 2 }, other], none, { isolate: true })?.items).toEqual([other]);
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

  test("a message derived of derived messages goes to a human", () => {
    expect(arrivals({ ...delivery, rows: [rowOf("x", 1, "candidate", 5)] }, 0)[0]?.what).toBe("too_many_hops");
  });
});

describe("planModelFault", () => {
  const turn = { lane: "team" as const, items: 1, freshSegment: false, settingsProblem: null, nowMs: 1000, backOffAtMs: 1500 };
  const later = new Fault("unavailable", "It is down.");
  const never = new Fault("provider", "It refused.", { retry: "never" });

  test("[RT5] a passing fault backs off, and people hear of the third in a row", () => {
    const first = planModelFault(freshMeta, later, turn);
    expect(first.meta).toMatchObject({ failures: 1, retryAtMs: 1500, notice: null, modelNote: "It is down." });
    const third = planModelFault({ ...freshMeta, failures: 2 }, later, turn);
    expect(third.meta.notice).toContain("your message is kept");
  });

  test("[RT5] a provider that says when to come again is not asked before", () => {
    const slow = new Fault("rate_limited", "Slow down.", { retryAfterMs: 60_000 });
    expect(planModelFault(freshMeta, slow, turn).meta.retryAtMs).toBe(61_000);
  });

  test("[RT5] wrong settings are told at once, with the sentence of the fault, and blame no item", () => {
    const plan = planModelFault(freshMeta, new Fault("unauthorised", "MODEL_API_KEY is refused."), turn);
    expect(plan).toMatchObject({ blameItem: false, countTries: true, meta: { isolate: false } });
    expect(plan.meta.notice).toContain("MODEL_API_KEY is refused.");
  });

  test("[RT5] a refused batch is taken apart, then the past is left behind, then the item is to blame", () => {
    const batch = planModelFault(freshMeta, never, { ...turn, items: 3 });
    expect(batch).toMatchObject({ blameItem: false, countTries: false, meta: { isolate: true } });
    const past = planModelFault(freshMeta, never, turn);
    expect(past).toMatchObject({ blameItem: false, countTries: false, meta: { segments: { team: 2, public: 1 }, retryAtMs: 1000 } });
    expect(planModelFault(past.meta, never, { ...turn, freshSegment: true })).toMatchObject({ blameItem: true, countTries: true });
  });

  test("[RT5] when everything fails, no single item is to blame", () => {
    const plan = planModelFault({ ...freshMeta, failures: 4 }, never, { ...turn, freshSegment: true });
    expect(plan.blameItem).toBe(false);
  });
});

test("only people of the team who asked for something are told of an outage, once each thread", () => {
  const twice = queuedTrigger({ name: "d", by: member });
  const candidate = queuedTrigger({ name: "e", by: member, thread: "four", outcome: "candidate" });
  expect(threadsToTell([visitor, team, twice, candidate, other], [other.threadId]).map((item) => item.id)).toEqual([team.id]);
});
