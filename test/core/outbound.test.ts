import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  afterFind,
  afterSend,
  beginSend,
  type ChannelResult,
  confirm,
  expire,
  maxAgeMs,
  newEntry,
  nextOutboundStep,
  type OutboundEntry,
  unsentWords,
} from "../../src/core/outbound.ts";

const minuteMs = 60_000;
const ageMs = maxAgeMs("instant");
const sent: ChannelResult = { ok: true, providerId: "77" };
const absent: ChannelResult = { ok: true, providerId: null };
const fails = (retry: "never" | "later" | "unknown", retryAfterMs?: number): ChannelResult => ({
  ok: false,
  retry,
  reason: "the provider said no",
  retryAfterMs,
});

test("people are told once of all that was not sent, and why, in whole sentences", () => {
  const failed: OutboundEntry = { ...newEntry("out_a", 0), state: "failed", detail: "The address is missing." };
  expect(unsentWords([failed, { ...failed, id: "out_b" }], "C1")).toBe("2 messages for C1 could not be sent. The address is missing.");
  const lost: OutboundEntry = { ...failed, state: "unknown", detail: null };
  expect(unsentWords([lost, failed], "C1")).toBe(
    "2 messages for C1 did not surely arrive (unknown: no reason given; failed: The address is missing).",
  );
});

describe("the outbound ledger", () => {
  test("[R10] a message goes pending, in flight, sent, confirmed, and nothing is due after that", () => {
    const begun = beginSend(newEntry("out_a", 0));
    expect(begun).toMatchObject({ state: "pending", inFlight: true, attempts: 1 });
    const there = afterSend(begun, sent, 10);
    expect(there).toMatchObject({ state: "sent", inFlight: false, dueMs: null, providerId: "77" });
    expect(nextOutboundStep(there, 10, ageMs)).toEqual({ do: "nothing" });
    expect(confirm(there, "2077")).toMatchObject({ state: "confirmed", dueMs: null, providerId: "77" });
    expect(confirm(begun, "77")).toMatchObject({ state: "confirmed", inFlight: false, dueMs: null, providerId: "77" });
  });

  test("[O2] [R10] a refusal for good fails it visibly; a passing one waits at least as long as the provider asked", () => {
    const begun = beginSend(newEntry("out_a", 0));
    expect(afterSend(begun, fails("never"), 10)).toMatchObject({ state: "failed", dueMs: null, detail: "the provider said no" });
    const later = afterSend(begun, fails("later", 90_000), 10);
    expect(later).toMatchObject({ state: "pending", inFlight: false, dueMs: 90_010 });
    expect(nextOutboundStep(later, 90_000, ageMs)).toEqual({ do: "wait", untilMs: 90_010 });
    expect(nextOutboundStep(later, 90_010, ageMs)).toEqual({ do: "send" });
  });

  test("[O1] [R9] an ambiguous send is looked up before anything is sent again", () => {
    const unknown = afterSend(beginSend(newEntry("out_a", 0)), fails("unknown"), 10);
    expect(unknown.state).toBe("unknown");
    expect(nextOutboundStep(unknown, unknown.dueMs ?? 0, ageMs)).toEqual({ do: "find" });
    expect(afterFind(unknown, sent, 5_000, ageMs)).toMatchObject({ state: "sent", providerId: "77" });
    const retry = afterFind(unknown, absent, 5_000, ageMs);
    expect(nextOutboundStep(retry, 5_000, ageMs)).toEqual({ do: "send" });
  });

  test("[R9] found in flight after a crash, it is looked up however old it is", () => {
    const begun = beginSend(newEntry("out_a", 0));
    expect(nextOutboundStep(begun, 15 * 60 * minuteMs, ageMs)).toEqual({ do: "find" });
    expect(afterFind(begun, absent, 15 * 60 * minuteMs, ageMs)).toMatchObject({ state: "expired", dueMs: null });
  });

  test("[O3] [R9] what cannot be looked up stays unknown, is looked up again, and in the end stays visibly unknown", () => {
    const unknown = afterSend(beginSend(newEntry("out_a", 0)), fails("unknown"), 10);
    const again = afterFind(unknown, fails("later"), 5_000, ageMs);
    expect(again.state).toBe("unknown");
    expect(nextOutboundStep(again, again.dueMs ?? 0, ageMs)).toEqual({ do: "find" });
    expect(afterFind(again, fails("later"), ageMs + 1, ageMs)).toMatchObject({ state: "unknown", dueMs: null });
  });

  test("[O1] [H7] [Q3] after a restart only the young message is sent: the old ones expire, the sent ones stay sent", () => {
    const nowMs = 15 * 60 * minuteMs;
    const hundred = Array.from({ length: 100 }, (_, i) => afterSend(beginSend(newEntry(`out_s${i}`, 0)), sent, 10));
    const nine = Array.from({ length: 9 }, (_, i) => newEntry(`out_o${i}`, 0));
    const steps = [...hundred, ...nine, newEntry("out_young", nowMs - 2 * minuteMs)].map(
      (entry) => nextOutboundStep(entry, nowMs, ageMs).do,
    );
    expect(steps.filter((step) => step === "send")).toHaveLength(1);
    expect(steps.filter((step) => step === "expire")).toHaveLength(9);
    expect(steps.filter((step) => step === "nothing")).toHaveLength(100);
    expect(expire(nine[0] ?? newEntry("out_none", 0))).toMatchObject({ state: "expired", dueMs: null });
  });

  test("[R9] [R10] whatever the provider and the process do: never on the wire twice, and always a visible end", () => {
    // What the provider does with a send: takes it or not, and whether we hear of it; a crash loses what we would have noted.
    const send = fc.record({ takes: fc.boolean(), answer: fc.constantFrom("ok", "later", "unknown", "crash") });
    const look = fc.constantFrom("ok", "later", "crash");
    fc.assert(
      fc.property(fc.array(send, { maxLength: 12 }), fc.array(look, { maxLength: 12 }), fc.nat(3 * minuteMs), (sends, looks, idleMs) => {
        let entry: OutboundEntry = newEntry("out_a", 0);
        let nowMs = 0;
        let wire = 0;
        for (let i = 0; i < 200; i++) {
          nowMs += idleMs;
          const step = nextOutboundStep(entry, nowMs, ageMs);
          if (step.do === "nothing") break;
          if (step.do === "wait") nowMs = step.untilMs;
          if (step.do === "expire") entry = expire(entry);
          if (step.do === "send") {
            entry = beginSend(entry);
            const { takes, answer } = sends.shift() ?? { takes: true, answer: "ok" };
            // An honest provider: `ok` means taken, `later` means not taken.
            if (answer === "ok" || (answer !== "later" && takes)) wire += 1;
            if (answer === "ok") entry = afterSend(entry, sent, nowMs);
            else if (answer !== "crash") entry = afterSend(entry, fails(answer as "later" | "unknown"), nowMs);
          }
          if (step.do === "find") {
            const answer = looks.shift() ?? "ok";
            if (answer === "ok") entry = afterFind(entry, wire > 0 ? sent : absent, nowMs, ageMs);
            else if (answer === "later") entry = afterFind(entry, fails("later"), nowMs, ageMs);
          }
        }
        expect(wire).toBeLessThanOrEqual(1);
        expect(nextOutboundStep(entry, nowMs, ageMs)).toEqual({ do: "nothing" });
        if (entry.state === "sent") expect(wire).toBe(1);
        if (entry.state === "expired") expect(wire).toBe(0);
      }),
    );
  });
});
