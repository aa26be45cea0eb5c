import { describe, expect, test } from "vitest";
import { freshMeta, type InboxItem, nextTurnMs, pickTurn, type RouterMeta } from "../../src/core/router.ts";
import {
  afterModelAnswer,
  type FailedTurn,
  isToAsk,
  planLostTurn,
  planModelFault,
  routerFault,
  threadsToTell,
  waitingWords,
} from "../../src/core/router-faults.ts";
import { Fault } from "../../src/protocol/fault.ts";
import { guest, member, queuedTrigger, type TriggerParts } from "../support/router-fixtures.ts";

const item = { attempts: 0, tries: 0 };
const turn: FailedTurn = { lane: "team", items: [item], later: false, settingsProblem: null, nowMs: 1000 };
const batch: FailedTurn = { ...turn, items: [item, item, item] };
const later = new Fault("unavailable", "It is down.");
const never = new Fault("provider", "It refused.", { retry: "never" });
const key = new Fault("unauthorised", "The model refuses us access.", { detail: "MODEL_API_KEY is refused." });
const slow = new Fault("rate_limited", "Slow down.", { retryAfterMs: 60_000 });

describe("isToAsk", () => {
  const failedOnce: RouterMeta = { ...freshMeta, doubts: { ...freshMeta.doubts, team: { failures: 1, untilMs: 0, width: null } } };

  test("[RT7] a passing fault is looked into when it comes again, a refusal at once, and what concerns all never", () => {
    expect(isToAsk(freshMeta, later, batch)).toBe(false);
    expect(isToAsk(failedOnce, later, batch)).toBe(true);
    expect(isToAsk(failedOnce, later, { ...batch, lane: "public" })).toBe(false);
    expect(isToAsk(freshMeta, never, batch)).toBe(true);
    expect(isToAsk(freshMeta, later, { ...turn, items: [{ attempts: 1, tries: 1 }] })).toBe(true);
    for (const fault of [key, slow]) expect(isToAsk(failedOnce, fault, batch)).toBe(false);
    expect(isToAsk(failedOnce, never, { ...batch, settingsProblem: "MODEL_NAME is missing." })).toBe(false);
  });
});

describe("planModelFault", () => {
  test("[RT5] a first passing fault is tried once more, and holds the other lane not at all", () => {
    const { meta, blame } = planModelFault(freshMeta, later, batch, null);
    expect(meta).toMatchObject({ failures: 1, retryAtMs: 0, notice: null, modelNote: "It is down." });
    expect(meta.doubts).toEqual({ team: { failures: 1, untilMs: 2000, width: null }, public: freshMeta.doubts.public });
    expect(blame).toBe(false);
  });

  test("[RT5] in an outage all wait, longer each time, people hear of the third failure, and no item is to blame", () => {
    let meta = planModelFault(freshMeta, later, turn, null).meta;
    const waits: number[] = [];
    const notices: (string | null)[] = [];
    for (let i = 0; i < 3; i++) {
      const plan = planModelFault(meta, later, turn, "outage");
      expect(plan.blame).toBe(false);
      meta = plan.meta;
      waits.push(meta.retryAtMs - turn.nowMs);
      notices.push(meta.notice);
    }
    expect(waits).toEqual([2000, 4000, 8000]);
    expect(notices).toEqual([null, expect.stringContaining("your message is kept"), expect.stringContaining("your message is kept")]);
  });

  test("[RT5] a provider that says when to come again is not asked before", () => {
    expect(planModelFault(freshMeta, slow, turn, null).meta.retryAtMs).toBe(61_000);
  });

  test("[RT5] wrong settings are told at once, with the sentence of the fault, and blame no item", () => {
    const plan = planModelFault(freshMeta, key, turn, null);
    expect(plan).toMatchObject({ blame: false, meta: { lastRetry: "never", doubts: { team: { width: null } } } });
    expect(plan.meta.notice).toContain("The model refuses us access.");
  });

  test("[A11] the details of wrong settings are told to a person of the team on their own page, and to nobody elsewhere", () => {
    const { meta } = planModelFault(freshMeta, key, turn, null);
    expect(meta.modelNote).toBe("MODEL_API_KEY is refused.");
    const words = (parts: TriggerParts) => waitingWords(meta, meta.notice ?? "", queuedTrigger(parts));
    expect(words({ name: "own", by: member })).toBe(
      "I cannot answer yet. MODEL_API_KEY is refused. Your message is kept and I will answer.",
    );
    for (const elsewhere of [
      { name: "issue", by: member, thread: "7" },
      { name: "guest", by: guest },
    ])
      expect(words(elsewhere)).toBe("I cannot answer yet. The model refuses us access. Your message is kept and I will answer.");
  });

  test("[RT7] a refused batch goes in halves, and nobody is told of an outage", () => {
    const { meta, blame } = planModelFault({ ...freshMeta, failures: 5, notice: "old" }, never, batch, "items");
    expect(meta).toMatchObject({ failures: 0, retryAtMs: 0, notice: null, doubts: { team: { width: 2, untilMs: 1000 } } });
    expect(blame).toBe(false);
  });

  test("[RT7] what fails alone is to blame, waits apart for longer each time, and the last time goes without the past", () => {
    const plans = [0, 1, 2].map((attempts) =>
      planModelFault(freshMeta, never, { ...turn, items: [{ attempts, tries: attempts }] }, "items"),
    );
    expect(plans.map(({ blame }) => blame)).toEqual([true, true, true]);
    expect(plans.map(({ meta }) => meta.apartMs - turn.nowMs)).toEqual([4000, 16_000, 64_000]);
    expect(plans.map(({ meta }) => meta.segments.team)).toEqual([1, 2, 1]);
    expect(plans.map(({ meta }) => meta.doubts.team)).toEqual([freshMeta.doubts.team, freshMeta.doubts.team, freshMeta.doubts.team]);
  });

  test("[RT7] a past that the model refuses is left behind, in its lane only, and the items go at once", () => {
    const plan = planModelFault(freshMeta, never, batch, "past");
    expect(plan).toMatchObject({ blame: false, meta: { segments: { team: 2, public: 1 }, doubts: freshMeta.doubts } });
  });

  test("[RT7] what a turn itself read before its call failed is among the past, and still counts against the turn's items", () => {
    expect(planModelFault(freshMeta, never, { ...turn, later: true }, "past")).toMatchObject({
      blame: true,
      meta: { segments: { team: 2 } },
    });
    const many = planModelFault(freshMeta, never, { ...batch, later: true }, "past");
    expect(many).toMatchObject({ blame: false, meta: { segments: { team: 2 }, doubts: { team: { width: 2 } } } });
  });

  test("[RT7] an error of our own code is looked into like any other", () => {
    expect(
      isToAsk(planModelFault(freshMeta, routerFault(new TypeError("x")), batch, null).meta, routerFault(new TypeError("x")), batch),
    ).toBe(true);
  });
});

describe("afterModelAnswer", () => {
  test("[RT7] an answer ends the doubt of its lane; one that settles none of several items begins it", () => {
    const before = planModelFault(freshMeta, never, batch, "items").meta;
    expect(afterModelAnswer(before, "team", null).doubts.team.width).toBeNull();
    expect(afterModelAnswer(before, "public", null).doubts.team.width).toBe(2);
    expect(afterModelAnswer(freshMeta, "team", 5).doubts.team.width).toBe(3);
    expect(afterModelAnswer(freshMeta, "team", 1).doubts.team.width).toBeNull();
  });
});

describe("planLostTurn", () => {
  test("[RT7] one item whose turn was lost is tried once more at once; lost again it counts, and what failed before counts at once", () => {
    const first = planLostTurn(freshMeta, turn);
    expect(first.blame).toBe(false);
    expect(nextTurnMs([queuedTrigger({ name: "a", by: member })], new Set(), first.meta)).toBeLessThanOrEqual(turn.nowMs);
    expect(planLostTurn(first.meta, turn)).toMatchObject({ blame: true, meta: { apartMs: 5000 } });
    expect(planLostTurn(freshMeta, { ...turn, items: [{ attempts: 1, tries: 1 }] })).toMatchObject({ blame: true });
    // An answer in between: it was no more than a restart.
    expect(planLostTurn(afterModelAnswer(first.meta, "team", null), turn).blame).toBe(false);
  });

  test("[RT7] several items of a lost turn go in halves, at no cost to any; of one whose items are all decided nothing follows", () => {
    expect(planLostTurn(freshMeta, batch)).toMatchObject({ blame: false, meta: { doubts: { team: { width: 2 } }, notice: null } });
    expect(planLostTurn(freshMeta, { ...turn, items: [] })).toEqual({ meta: freshMeta, blame: false });
  });
});

/** Plays turns until the queue is empty; the model refuses what holds a bad item, or the process dies of it. */
function play(count: number, bad: ReadonlySet<number>, dies = false) {
  let queued: InboxItem[] = Array.from({ length: count }, (_, i) => queuedTrigger({ name: `n${i}`, by: member, thread: `t${i}` }));
  const badIds = new Set(queued.flatMap((each, i) => (bad.has(i) ? [each.id] : [])));
  let meta: RouterMeta = freshMeta;
  let nowMs = 1000;
  const decided: string[] = [];
  const escalated: string[] = [];
  let calls = 0;
  while (queued.length > 0 && calls < 1000) {
    const picked = pickTurn(queued, new Set(), meta, nowMs);
    if (picked === null) {
      nowMs += 500;
      continue;
    }
    calls += 1;
    if (!picked.items.some(({ id }) => badIds.has(id))) {
      decided.push(...picked.items.map(({ id }) => id));
      queued = queued.filter((each) => !picked.items.includes(each));
      meta = afterModelAnswer(meta, picked.lane, null);
      continue;
    }
    const plan = dies
      ? planLostTurn(meta, { lane: picked.lane, items: picked.items, nowMs })
      : planModelFault(meta, never, { ...turn, items: picked.items, nowMs }, "items");
    meta = plan.meta;
    if (!plan.blame) continue;
    const blamed = picked.items[0];
    queued = queued.flatMap((each) => {
      if (each !== blamed) return [each];
      if (each.attempts + 1 < 3) return [{ ...each, attempts: each.attempts + 1, tries: each.tries + 1 }];
      escalated.push(each.id);
      return [];
    });
  }
  return { decided: decided.length, escalated, badIds: [...badIds], calls };
}

test.each([[[7]], [[0]], [[39]], [[3, 4, 30]], [[0, 1, 2, 3]]])(
  "[RT7] of forty items those that the model refuses, or that the process dies of (%j), end at people, and every other one is decided",
  (bad) => {
    for (const dies of [false, true]) {
      const played = play(40, new Set(bad), dies);
      expect(played.decided).toBe(40 - bad.length);
      expect(new Set(played.escalated)).toEqual(new Set(played.badIds));
      // Halving, not one by one.
      expect(played.calls).toBeLessThan(5 + bad.length * 20);
    }
  },
);

test("only people of the team who asked for something are told of an outage, once each thread", () => {
  const team = queuedTrigger({ name: "a", by: member });
  const other = queuedTrigger({ name: "b", by: member, thread: "two" });
  const visitor = queuedTrigger({ name: "c", by: guest, thread: "three" });
  const twice = queuedTrigger({ name: "d", by: member });
  const candidate = queuedTrigger({ name: "e", by: member, thread: "four", outcome: "candidate" });
  expect(threadsToTell([visitor, team, twice, candidate, other], [other.threadId]).map(({ id }) => id)).toEqual([team.id]);
});
