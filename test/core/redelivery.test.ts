import { describe, expect, test } from "vitest";
import { type DeliveryAttempt, maxAttempts, planRedelivery } from "../../src/core/redelivery.ts";

const hourMs = 60 * 60_000;
const nowMs = 1_000 * hourMs;
let ids = 0;
const attempt = (guid: string, hoursAgo: number, ok = false, event = "issues"): DeliveryAttempt => ({
  id: ++ids,
  guid,
  atMs: nowMs - hoursAgo * hourMs,
  ok,
  again: false,
  event,
});
const guids = (listed: DeliveryAttempt[], max = 10): string[] => planRedelivery(listed, nowMs, max).redeliver.map(({ guid }) => guid);

describe("[G8] failed deliveries", () => {
  test("are repeated unless one of their attempts succeeded", () => {
    expect(guids([attempt("good", 1, true), attempt("bad", 1), attempt("mended", 2), attempt("mended", 1, true)])).toEqual(["bad"]);
  });

  test("come back in order: what people said first, within that the oldest, and no more than a run may", () => {
    const listed = [attempt("ci", 9, false, "check_run"), attempt("new", 1), attempt("old", 5, false, "issue_comment")];
    expect(guids(listed)).toEqual(["old", "new", "ci"]);
    expect(guids(listed, 2)).toEqual(["old", "new"]);
  });

  test("older than three days are left alone: GitHub would not send them", () => {
    expect(guids([attempt("ancient", 73), attempt("late", 71)])).toEqual(["late"]);
  });

  test("wait longer after each failure, and one that always fails is given up, so that it holds nothing back", () => {
    const fresh = [attempt("fresh", 0.01)];
    expect(planRedelivery(fresh, nowMs, 10)).toMatchObject({ redeliver: [], openSinceMs: fresh[0]?.atMs, givenUp: 0 });
    const tried = (n: number, hoursAgo: number) => Array.from({ length: n }, () => attempt("often", hoursAgo));
    expect(guids(tried(4, 0.1))).toEqual([]);
    expect(guids(tried(4, 0.2))).toEqual(["often"]);
    expect(planRedelivery(tried(maxAttempts, 5), nowMs, 10)).toEqual({ redeliver: [], openSinceMs: null, givenUp: 1 });
  });

  test("the newest attempt is the one that is repeated", () => {
    const [first, second] = [attempt("x", 5), attempt("x", 4)];
    expect(planRedelivery([first, second], nowMs, 10).redeliver).toEqual([second]);
  });
});
