import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { authorityOf } from "../../src/core/authority.ts";
import { asEdited, asksMoreThan, type Edition, editionOf, inOrder, type KnownEdition, placeOf } from "../../src/core/thread-editions.ts";
import type { ThreadEvent } from "../../src/protocol/events.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Outcome } from "../../src/protocol/trigger.ts";
import { guest, member, triggerOf } from "../support/router-fixtures.ts";

type Accepted = Extract<ThreadEvent, { kind: "thread.accepted" }>;

const born = "2026-11-30T09:00:00Z";
const made = (kind: string, ageMs: number, facts: Record<string, string> = {}) =>
  editionOf({ kind, externalId: "55", facts: { created: born, ...facts }, atMs: Date.parse(born) + ageMs });
const accepted = (outcome: Outcome, more: Partial<Accepted> = {}, text = "words"): Accepted => ({
  kind: "thread.accepted",
  trigger: triggerOf({ name: `${outcome}${text}`, by: member, thread: "1", text }),
  verdict: { outcome, rule: "r", reason: "" },
  mode: "decide",
  subscribers: [],
  ...more,
});
const none = () => false;

describe("what a trigger is a version of", () => {
  test("[R5] originals, edits and deletions of issues, pull requests, comments and reviews; nothing else", () => {
    expect(made("issue_comment.created", 0)).toMatchObject({ subject: "issue_comment:55", what: "original" });
    expect(made("issues.edited", 5_000, { updated: born })).toEqual({ subject: "issues:55", what: "edit", at: born, young: true });
    expect(made("pull_request_review.dismissed", 0)?.what).toBe("deletion");
    expect(made("issue_comment.edited", limits.originalDelayMs)?.young).toBe(false);
    expect(editionOf({ kind: "issue_comment.edited", externalId: "55", atMs: 0 })?.young).toBe(false);
    for (const kind of ["issues.labeled", "push", "check_run.completed", "message", "issues.edited.twice"])
      expect(made(kind, 0)).toBeNull();
    expect(editionOf({ kind: "issues.edited", atMs: 0 })).toBeNull();
  });
});

describe("where a version goes", () => {
  const edition = (what: Edition["what"], at = "", young = true): Edition => ({ subject: "issues:55", what, at, young });
  const row = (what: Edition["what"], at = "", seq: number | null = 3): KnownEdition => ({ triggerId: `trg_${what}`, what, at, seq });

  test("[R5] an edit or a deletion waits while its original may still come, and is a row where it came, or comes no more", () => {
    for (const what of ["edit", "deletion"] as const) {
      expect(placeOf(edition(what), [], none, none)).toEqual({ do: "hold" });
      expect(placeOf(edition(what), [row("edit", "", null)], none, none)).toEqual({ do: "hold" });
      expect(placeOf(edition(what), [], () => true, none)).toEqual({ do: "take" });
      expect(placeOf(edition(what, "", false), [], none, none)).toEqual({ do: "take" });
    }
    expect(placeOf(edition("original"), [row("edit", "", null)], none, none)).toEqual({ do: "take" });
  });

  test("[R5] an earlier version after a later one is never a row of its own", () => {
    const stale = { do: "stale", newer: "trg_edit" };
    expect(placeOf(edition("original"), [row("edit")], none, none)).toEqual(stale);
    expect(placeOf(edition("edit", "2026-11-30T09:00:01Z"), [row("edit", "2026-11-30T09:00:02Z")], none, none)).toEqual(stale);
    expect(placeOf(edition("edit", "2026-11-30T09:00:02Z"), [row("edit", "2026-11-30T09:00:02Z")], none, none)).toEqual({ do: "take" });
    expect(placeOf(edition("edit", "z"), [row("edit", "a"), row("deletion", "a", 4)], none, none)).toMatchObject({ do: "stale" });
  });

  test("[T20] [R1] [R5] a late original that asks the router for more is judged all the same; not when it was deleted", () => {
    expect(placeOf(edition("original"), [row("edit")], none, (seq) => seq === 3)).toEqual({ do: "take_as", seq: 3 });
    expect(placeOf(edition("original"), [row("edit"), row("deletion", "", 4)], none, () => true)).toMatchObject({ do: "stale" });
    expect(asksMoreThan(accepted("request"), accepted("record"))).toBe(true);
    expect(asksMoreThan(accepted("request"), accepted("request"))).toBe(false);
    expect(asksMoreThan(accepted("record"), accepted("ignore"))).toBe(false);
    // A task that follows has the newer words already.
    expect(asksMoreThan(accepted("request", { mode: "observe", subscribers: ["tsk_a"] }), accepted("record"))).toBe(false);
  });

  test("[R5] then it has the newest words, and nobody's authority but the lower one", () => {
    const edit = accepted("record", {}, "new words");
    const late = asEdited(accepted("request", {}, "old words"), edit);
    expect(late).toMatchObject({ verdict: { outcome: "request" }, trigger: { text: "new words", facts: { edited: edit.trigger.id } } });
    const byGuest = { ...edit, trigger: { ...edit.trigger, principal: guest } };
    expect(authorityOf(asEdited(accepted("request"), byGuest).trigger.principal)).toBe("guest");
  });
});

test("[T20] [R5] in whatever order the versions of a text come, and however long between, the rows are in theirs and none is lost", () => {
  const at = (n: number): string => `2026-11-30T09:00:0${n}Z`;
  const versions: (Edition & { id: string })[] = [
    { id: "original", subject: "s", what: "original", at: "", young: true },
    { id: "edit1", subject: "s", what: "edit", at: at(1), young: true },
    { id: "edit2", subject: "s", what: "edit", at: at(2), young: true },
    { id: "deletion", subject: "s", what: "deletion", at: at(2), young: true },
  ];
  const newness = (id: string): number => versions.findIndex((each) => each.id === id);
  const delivered = fc
    .shuffledSubarray(versions, { minLength: 1 })
    .chain((order) => fc.tuple(fc.constant(order), fc.array(fc.boolean(), { minLength: order.length, maxLength: order.length })));
  fc.assert(
    fc.property(delivered, ([order, pauses]) => {
      const known: KnownEdition[] = [];
      const rows: { id: string; shows: string }[] = [];
      const stale: string[] = [];
      const takeHeld = (): void => {
        for (const each of inOrder(known.filter(({ seq }) => seq === null))) {
          rows.push({ id: each.triggerId, shows: each.triggerId });
          each.seq = rows.length;
        }
      };
      order.forEach((version, i) => {
        const place = placeOf(
          version,
          known,
          () => rows.some(({ id }) => id === "original"),
          () => true,
        );
        if (place.do === "stale") stale.push(version.id);
        else if (place.do === "hold") known.push({ triggerId: version.id, what: version.what, at: version.at, seq: null });
        else {
          rows.push({ id: version.id, shows: place.do === "take_as" ? (rows[place.seq - 1]?.id ?? "") : version.id });
          if (version.what === "original") takeHeld();
          else known.push({ triggerId: version.id, what: version.what, at: version.at, seq: rows.length });
        }
        if (pauses[i]) takeHeld();
      });
      takeHeld();
      expect([...rows.map(({ id }) => id), ...stale].sort()).toEqual(order.map(({ id }) => id).sort());
      const shown = rows.map(({ shows }) => newness(shows));
      expect(shown).toEqual([...shown].sort((a, b) => a - b));
      expect(rows.at(-1)?.shows).toBe(order.reduce((a, b) => (newness(b.id) > newness(a.id) ? b : a)).id);
    }),
    { numRuns: 1_000 },
  );
});
