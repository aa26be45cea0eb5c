import { describe, expect, test } from "vitest";
import { decideOn, releasedByItself, shippedReleasePolicy } from "../../src/core/offer.ts";
import type { Offer, ReleasePolicy } from "../../src/protocol/offer.ts";
import type { Principal } from "../../src/protocol/principal.ts";

const here = { source: "github", place: "acme/app" };
const from: Offer["from"] = { taskId: "tsk_a", authority: "member", tainted: false, ...here };
const pull = { do: "pull_request", head: "switchyard/tsk_a", base: "main", title: "Fix", draft: false } as const;

const offer = (more: Partial<Offer> = {}, deed: Offer["outbound"]["deed"] = pull): Offer => ({
  outbound: { id: "out_a-b", threadId: "thr_a", kind: "offer", text: "Why.", hops: 1, ...(deed === undefined ? {} : { deed }) },
  title: "Pull request: Fix",
  from,
  ...more,
});
const all: ReleasePolicy = { version: 4, byItself: ["comment", "label", "pull_request"] };
const person = (role: Principal["role"], onBehalfOf?: Principal["onBehalfOf"]): Principal => ({
  role,
  id: "x",
  name: "X",
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
});
const say = (by: Principal, via: "router" | "person" = "person", verdict: "release" | "decline" = "release") => ({ verdict, by, via });

describe("what waits for a release", () => {
  test("[O4] only what the setting names leaves by itself, and by default no words to people", () => {
    expect(releasedByItself(offer(), here, shippedReleasePolicy)).toContain("version 0");
    const comment: Offer = { ...offer(), outbound: { id: "out_a-b", threadId: "thr_a", kind: "offer", text: "Hi.", hops: 1 } };
    expect(releasedByItself(comment, here, shippedReleasePolicy)).toBeNull();
    expect(releasedByItself(comment, here, all)).toContain("version 4");
    expect(releasedByItself(offer(), here, { version: 5, byItself: [] })).toBeNull();
  });

  test.each([
    ["a task that read public text", { from: { ...from, tainted: true } }],
    ["a task that a guest asked for", { from: { ...from, authority: "guest" as const } }],
    ["a task that the public asked for", { from: { ...from, authority: "public" as const } }],
    ["a task that was asked for in another repository", { from: { ...from, place: "acme/other" } }],
    ["a task that was asked for in the widget", { from: { ...from, source: "web", place: "widget" } }],
    ["a draft that nobody asked for", { personOnly: true as const }],
  ])("[O4] nothing of %s leaves by itself, whatever the setting says", (_what, more) => {
    expect(releasedByItself(offer(more), here, all)).toBeNull();
  });

  test("[O5] the first word counts; later ones change nothing", () => {
    expect(decideOn(offer(), "held", say(person("member")), 1, 10)).toBe("released");
    expect(decideOn(offer(), "held", say(person("member"), "person", "decline"), 1, 10)).toBe("declined");
    for (const state of ["released", "declined", "expired"] as const)
      expect(decideOn(offer(), state, say(person("owner")), 1, 10)).toBeNull();
  });

  test("[O5] a person needs the team's authority and the task's; a task of the public too is released by the team alone", () => {
    for (const role of ["guest", "public", "bot", "agent"] as const)
      expect(() => decideOn(offer({ from: { ...from, authority: "public" } }), "held", say(person(role)), 1, 10)).toThrow(
        /authority of member/,
      );
    expect(() => decideOn(offer({ from: { ...from, authority: "owner" } }), "held", say(person("member")), 1, 10)).toThrow(/owner/);
    expect(decideOn(offer({ from: { ...from, authority: "public", tainted: true } }), "held", say(person("member")), 1, 10)).toBe(
      "released",
    );
  });

  test("[O5] the router releases nothing of a tainted task, of a public one, nor what only a person may; declining it may", () => {
    const router = person("agent", "member");
    expect(decideOn(offer(), "held", say(router, "router"), 1, 10)).toBe("released");
    for (const more of [
      { from: { ...from, tainted: true } },
      { from: { ...from, authority: "public" as const } },
      { personOnly: true as const },
    ]) {
      expect(() => decideOn(offer(more), "held", say(router, "router"), 1, 10)).toThrow(/Only a person/);
      expect(decideOn(offer(more), "held", say(router, "router", "decline"), 1, 10)).toBe("declined");
    }
    expect(() => decideOn(offer(), "held", say(person("agent", "public"), "router"), 1, 10)).toThrow(/authority/);
  });

  test("[O5] a word that comes after its time releases nothing", () => {
    expect(decideOn(offer(), "held", say(person("owner")), 10, 10)).toBe("expired");
  });
});
