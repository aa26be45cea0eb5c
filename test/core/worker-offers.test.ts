import { describe, expect, test } from "vitest";
import { mayRecall } from "../../src/core/worker-calls.ts";
import { withCard } from "../../src/core/worker-card.ts";
import { awaitsOffer, offerMoved } from "../../src/core/worker-offers.ts";
import { nextMove } from "../../src/core/worker-session.ts";
import type { InboxItem, InboxRow, TaskState } from "../../src/core/worker-state.ts";
import type { OfferView } from "../../src/protocol/offer.ts";
import { between, commandFor, rowOf, threadId } from "../support/worker-fixtures.ts";

const view = (state: OfferView["state"], sent?: OfferView["sent"]): OfferView => ({
  offer: {
    outbound: { id: "out_a-b", threadId, kind: "offer", text: "Fixes the parser.", hops: 1 },
    title: "Comment in acme/app",
    from: { taskId: "tsk_a", authority: "member", tainted: false, source: "github", place: "acme/app" },
  },
  state,
  atMs: 0,
  untilMs: 10,
  ...(state === "held" ? {} : { decided: { by: "Ana", via: "person", reason: "" } }),
  ...(sent === undefined ? {} : { sent }),
});
const inbox = () => {
  const rows: InboxRow[] = [];
  return {
    rows,
    receive: (item: InboxItem): InboxRow | null => {
      const row = rowOf(item);
      if (rows.some(({ key }) => key === row.key)) return null;
      rows.push(row);
      return row;
    },
  };
};
const moved = (task: TaskState, next: OfferView, box = inbox()) => ({
  box,
  change: offerMoved(task, next, { receive: box.receive, commandFor, nowMs: 5 }),
});

describe("a proposal of a task", () => {
  test("[W23] stands on the card while it waits, and the router hears of it once", () => {
    const { change } = moved(between(), view("held"));
    if (change === null) throw new Error("nothing changed");
    expect(change.reports).toMatchObject([{ kind: "proposal", offer: "out_a-b" }]);
    const { task } = withCard(change, [], 5);
    expect(task.card).toMatchObject({
      status: "waiting",
      waitingFor: "release",
      offers: [{ id: "out_a-b", title: "Comment in acme/app" }],
    });
    expect(awaitsOffer(task)).toBe(true);
    expect(nextMove(task, [], [], 5)).toEqual({ move: "sleep", untilMs: null });
    expect(moved(task, view("held")).change).toBeNull();
    const decided = moved(task, view("released", { state: "pending", providerId: null, detail: null })).change;
    if (decided === null) throw new Error("nothing changed");
    expect(withCard(decided, [], 6).task.card.offers).toBeUndefined();
    expect(moved(decided.task, view("held")).change?.reports ?? []).toEqual([]);
  });

  test.each([
    ["sent", view("released", { state: "sent", providerId: "7", detail: null }), /was released by Ana and is sent/],
    ["failed", view("released", { state: "failed", providerId: null, detail: "no such branch" }), /failed: no such branch/],
    ["declined", view("declined"), /declined by Ana/],
    ["expired", view("expired"), /in time/],
  ])("[W23] its end (%s) wakes the task, once, and a late word takes nothing back", (_stage, end, words) => {
    const held = moved(between(), view("held")).change?.task ?? between();
    const { change, box } = moved(held, end);
    if (change === null) throw new Error("nothing changed");
    expect(box.rows).toHaveLength(1);
    expect(box.rows[0]?.item).toMatchObject({ kind: "offer", text: expect.stringMatching(words) });
    expect(awaitsOffer(change.task)).toBe(false);
    expect(nextMove(change.task, box.rows, [], 5)).toEqual({ move: "begin" });
    expect(moved(change.task, view("held"), box).change).toBeNull();
  });

  test("[W23] a task that has ended hears it without being woken, and its card shows what still waits", () => {
    const ended = between({ mode: { mode: "ended", status: "done", endedMs: 1 } });
    const held = moved(ended, view("held")).change;
    if (held === null) throw new Error("nothing changed");
    expect(held.reports).toEqual([]);
    expect(withCard(held, [], 5).task.card).toMatchObject({ status: "done", offers: [{ id: "out_a-b" }] });
    const { change, box } = moved(held.task, view("declined"));
    expect(change?.consumed?.seqs).toEqual(box.rows.map(({ seq }) => seq));
  });

  test("[W11] is the task's own to read, also when it is tainted; another's is not", () => {
    const held = moved(between({ tainted: true }), view("held")).change?.task ?? between();
    const own = { commandOf: () => null, ownsArtifact: () => false };
    expect(mayRecall(held, "out_a-b", own)).toBe(true);
    expect(mayRecall(held, "out_a-c", own)).toBe(false);
  });
});
