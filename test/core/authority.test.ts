import { expect, test } from "vitest";
import { atLeast, authorityOf, laneOf, lower, refuseCommand, rowTaints, taints } from "../../src/core/authority.ts";
import type { Principal, Role } from "../../src/protocol/principal.ts";

const by = (role: Role, onBehalfOf?: Principal["onBehalfOf"]): Principal => ({
  role,
  id: role,
  name: role,
  ...(onBehalfOf ? { onBehalfOf } : {}),
});

test("[A1] people bring their role, agents and bots only what they speak for", () => {
  expect(["owner", "member", "guest", "public"].map((role) => authorityOf(by(role as Role)))).toEqual([
    "owner",
    "member",
    "guest",
    "public",
  ]);
  expect(authorityOf(by("bot"))).toBe("public");
  expect(authorityOf(by("bot", "member"))).toBe("member");
  expect(authorityOf(by("agent"))).toBe("public");
  expect(authorityOf(by("agent", "owner"))).toBe("owner");
});

test("of two authorities the lower one is found, and one is enough where it is not below what is needed", () => {
  expect([lower("owner", "public"), lower("guest", "member")]).toEqual(["public", "guest"]);
  expect(atLeast("owner", "member")).toBe(true);
  expect(atLeast("member", "owner")).toBe(false);
});

test("[A3][A4][A6] the team's words and its own CI do not taint; everybody else's do", () => {
  expect(laneOf("member")).toBe("team");
  expect(laneOf("guest")).toBe("public");
  expect([by("owner"), by("member"), by("bot", "member"), by("agent")].map(taints)).toEqual([false, false, false, false]);
  expect([by("guest"), by("public"), by("bot")].map(taints)).toEqual([true, true, true]);
});

test("[A7] what we said ourselves taints when it was made from public text", () => {
  const said = { id: "out_a-b", threadId: "thr_a", kind: "reply" as const, text: "x", hops: 0 };
  const row = (tainted?: boolean) => ({
    kind: "outbound" as const,
    seq: 1,
    atMs: 0,
    state: "sent" as const,
    outbound: { ...said, ...(tainted ? { tainted } : {}) },
  });
  expect(rowTaints(row())).toBe(false);
  expect(rowTaints(row(true))).toBe(true);
});

test("[A5] a command needs the authority of a member and a context free of public text", () => {
  expect(refuseCommand({ authority: "member", tainted: false })).toBeNull();
  expect(refuseCommand({ authority: "owner", tainted: true })).toMatch(/outside the team/);
  expect(refuseCommand({ authority: "guest", tainted: false })).toMatch(/member of the team/);
});
