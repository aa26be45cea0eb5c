import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import type { Actor, Draft } from "../../src/channels/github/draft.ts";
import { isOfTeam, type Lookup, principalOf } from "../../src/channels/github/permissions.ts";
import { type Env, readConfig } from "../../src/env.ts";
import { control } from "./github-deliveries.ts";

const { github } = readConfig(env as unknown as Env);
const place = "perm/app";
const grant = (login: string, permission: string, roleName?: string) =>
  control("permission", { place, login, permission, ...(roleName ? { roleName } : {}) });
const asked = async (login: string): Promise<number> =>
  ((await (await control(`requests?contains=/collaborators/${login}/`)).json()) as unknown[]).length;

const actor = (login: string, association: string | null = null, kind: Actor["kind"] = "person"): Actor => ({ login, kind, association });
const draftBy = (...actors: [Actor, ...Actor[]]): Draft => ({
  trigger: {
    id: "trg_a-b",
    source: "github",
    deliveryId: "d",
    threadId: "thr_a",
    place,
    threadKey: "issue:1",
    kind: "issue_comment.created",
    addressed: false,
    text: "",
    atMs: 0,
    hops: 0,
  },
  source: { kind: "people", actors },
  title: { plain: "Issue #1", words: null },
  subject: null,
});
const lookup = (more: Partial<Lookup> = {}): Lookup => ({
  config: github,
  nowMs: 1_000_000,
  personOf: async () => null,
  asking: new Map(),
  ...more,
});
const roleOf = async (...actors: [Actor, ...Actor[]]): Promise<string> => (await principalOf(draftBy(...actors), lookup())).role;

describe("[A1] a person of GitHub", () => {
  test.each(["NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "CONTRIBUTOR", "MANNEQUIN"])(
    "with the association %s is public, and GitHub is not asked",
    async (association) => {
      const login = `outsider-${association.toLowerCase()}`;
      await grant(login, "admin");
      expect(await roleOf(actor(login, association))).toBe("public");
      expect(await asked(login)).toBe(0);
    },
  );

  test.each([
    ["admin", "admin", "member"],
    ["maintain", "maintain", "member"],
    ["write", "maintain", "member"],
    ["write", "our own role", "member"],
    ["read", "triage", "public"],
    ["read", "read", "public"],
    ["none", "none", "public"],
    ["", "", "public"],
  ])("with the permission %s (%s) is %s", async (permission, roleName, role) => {
    for (const association of ["OWNER", "MEMBER", "COLLABORATOR", null]) {
      const login = `p-${permission}-${roleName}-${association}`.replaceAll(" ", "");
      await grant(login, permission, roleName);
      expect(await roleOf(actor(login, association))).toBe(role);
    }
  });

  test.each(["500", "404", "401", "403", "429", "html", "lost", "redirect"])(
    "is public when the question ends with %s, and can be asked again soon",
    async (fault) => {
      const login = `unlucky-${fault}`;
      await grant(login, "admin");
      await control("faults", { on: `/collaborators/${login}/`, faults: [fault] });
      const of = draftBy(actor(login, "OWNER"));
      expect((await principalOf(of, lookup())).role).toBe("public");
      expect((await principalOf(of, lookup({ nowMs: 1_000_000 + 61_000 }))).role).toBe("member");
    },
  );

  test("is asked about once for all that one delivery says of them", async () => {
    await grant("twice", "admin");
    const same = lookup();
    const answers = await Promise.all([0, 1, 2].map(() => isOfTeam(actor("twice", "OWNER"), place, same)));
    expect(answers).toEqual([true, true, true]);
    expect(await asked("twice")).toBe(1);
  });

  test("is public when GitHub does not answer within five seconds", async () => {
    await grant("slow", "admin");
    await control("faults", { on: "/collaborators/slow/", faults: ["hang"] });
    const began = Date.now();
    expect(await roleOf(actor("slow", "OWNER"))).toBe("public");
    expect(Date.now() - began).toBeLessThan(7_000);
  });

  test("is public without a token", async () => {
    await grant("tokenless", "admin");
    const principal = await principalOf(draftBy(actor("tokenless", "OWNER")), lookup({ config: { ...github, token: null } }));
    expect(principal).toEqual({ role: "public", id: "tokenless", name: "tokenless" });
  });

  test("is asked about once in ten minutes", async () => {
    await grant("cached", "write");
    const of = draftBy(actor("cached", "MEMBER"));
    for (const afterMs of [0, 1000, 9 * 60_000])
      expect((await principalOf(of, lookup({ nowMs: 5_000_000 + afterMs }))).role).toBe("member");
    expect(await asked("cached")).toBe(1);
    await grant("cached", "read");
    expect((await principalOf(of, lookup({ nowMs: 5_000_000 + 11 * 60_000 }))).role).toBe("public");
  });

  test("counts by the lowest of author and sender, and so does an edit", async () => {
    await grant("maintainer", "admin");
    expect(await roleOf(actor("maintainer", "OWNER"), actor("stranger", "NONE"))).toBe("public");
    expect(await roleOf(actor("stranger", "NONE"), actor("maintainer", "OWNER"))).toBe("public");
    expect(await roleOf(actor("maintainer", "OWNER"), actor("helper[bot]", null, "bot"))).toBe("bot");
    expect(await roleOf(actor("maintainer", "OWNER"))).toBe("member");
  });

  test("who is nobody, a bot, or our own account without a marker is not of the team", async () => {
    expect(await roleOf(actor("ghost", null, "ghost"))).toBe("public");
    expect(await roleOf(actor("renovate[bot]", "MEMBER", "bot"))).toBe("bot");
    expect(await roleOf(actor("switchyard-bot", "OWNER", "self"))).toBe("bot");
    expect(await isOfTeam(actor("switchyard-bot", "OWNER", "self"), place, lookup())).toBe(false);
  });

  test("with an odd login asks for exactly that login", async () => {
    expect(await roleOf(actor("../../admin/x?y=1", "OWNER"))).toBe("public");
    expect(await (await control(`requests?contains=${encodeURIComponent("%2F..%2Fadmin%2Fx%3Fy%3D1/permission")}`)).json()).toHaveLength(1);
  });
});

describe("a person of this deployment", () => {
  const of = draftBy(actor("Linked", "NONE"));

  test("is known by their login, a member at most, and GitHub is not asked", async () => {
    const personOf = async (login: string) => (login === "linked" ? { id: "prs_abc", name: "Member", revoked: false } : null);
    expect(await principalOf(of, lookup({ personOf }))).toEqual({ role: "member", id: "prs_abc", name: "Member" });
    expect(await asked("Linked")).toBe(0);
  });

  test("who was revoked is public, whatever GitHub says, and also while our records cannot be read", async () => {
    await grant("Linked", "admin");
    const owner = draftBy(actor("Linked", "OWNER"));
    const revoked = async () => ({ id: "prs_abc", name: "Member", revoked: true });
    expect((await principalOf(owner, lookup({ personOf: revoked }))).role).toBe("public");
    const away = () => Promise.reject(new Error("D1 is away"));
    expect((await principalOf(owner, lookup({ personOf: away }))).role).toBe("public");
  });
});

test("CI is a bot", async () => {
  expect(await principalOf({ ...draftBy(actor("x")), source: { kind: "ci", name: "github-actions", own: false } }, lookup())).toEqual({
    role: "bot",
    id: "github-actions",
    name: "github-actions",
  });
});
