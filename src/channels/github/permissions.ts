// Who is behind an event of GitHub. Whatever cannot be shown to be of the team is public.
import * as z from "zod/mini";
import { authorityOf, laneOf, lower } from "../../core/authority.ts";
import { putNewest } from "../../core/newest.ts";
import type { Config } from "../../env.ts";
import { logFault } from "../../log-fault.ts";
import { Fault } from "../../protocol/fault.ts";
import type { Principal } from "../../protocol/principal.ts";
import type { LinkedPerson, PersonOf } from "../channel.ts";
import { callGitHub, canCallGitHub } from "./api.ts";
import type { Actor, Draft } from "./draft.ts";

const timeoutMs = 5_000;
/** `unknown`: GitHub was not reached. */
type Access = "member" | "public" | "unknown";

/** A stranger who was just invited should not wait long; what is not known is asked again soon, but not for each event of a burst. */
const cacheMs: Record<Access, number> = { member: 10 * 60_000, public: 60_000, unknown: 10_000 };
const maxCached = 2_000;

/** GitHub's word that somebody is none of the repository's people needs no call; its word that they are is checked. */
const outsiders = new Set(["NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "CONTRIBUTOR", "MANNEQUIN"]);

export type Lookup = {
  config: Config["github"];
  nowMs: number;
  personOf: PersonOf;
  /** Questions under way: one delivery often names the same person several times. */
  asking: Map<string, Promise<boolean>>;
};

/** The principal of a draft: the lowest of those behind it, the author of the words first. Never an owner, never throws. */
export async function principalOf(draft: Draft, lookup: Lookup): Promise<Principal> {
  const { source } = draft;
  switch (source.kind) {
    case "ci":
      // [A6] CI of our own branches is the team's, status only; that of forks is anybody's.
      return {
        role: "bot",
        id: source.name.slice(0, 200) || "ci",
        name: source.name.slice(0, 200),
        ...(source.own ? { onBehalfOf: "member" as const } : {}),
      };
    case "people": {
      const principals = await Promise.all(source.actors.map((actor) => actorPrincipal(actor, draft.trigger.place, lookup)));
      return principals.reduce((a, b) => (lower(authorityOf(a), authorityOf(b)) === authorityOf(a) ? a : b));
    }
  }
}

/** Whether somebody's words may stand before the team's mind beside a trigger of somebody else. */
export async function isOfTeam(actor: Actor, place: string, lookup: Lookup): Promise<boolean> {
  return laneOf(authorityOf(await actorPrincipal(actor, place, lookup))) === "team";
}

async function actorPrincipal(actor: Actor, place: string, lookup: Lookup): Promise<Principal> {
  const account = { id: actor.login.toLowerCase(), name: actor.login };
  switch (actor.kind) {
    case "ghost":
      return { role: "public", ...account };
    case "bot":
    case "self":
      return { role: "bot", ...account };
    case "person": {
      const person = await linkedPerson(actor.login, lookup);
      if (person === "unknown" || person?.revoked) return { role: "public", ...account };
      if (person) return { role: "member", id: person.id, name: person.name };
      const member = !outsiders.has(actor.association ?? "") && (await mayWrite(place, actor.login, lookup));
      return { role: member ? "member" : "public", ...account };
    }
  }
}

async function linkedPerson(login: string, lookup: Lookup): Promise<LinkedPerson | null | "unknown"> {
  try {
    return await lookup.personOf(login.toLowerCase());
  } catch (error) {
    // Whoever was revoked must not come back because our records are away.
    logFault("github-accounts", error, { login });
    return "unknown";
  }
}

const cache = new Map<string, { member: boolean; untilMs: number }>();

const permission = z.object({ permission: z.string(), role_name: z.optional(z.nullable(z.string())) });

async function mayWrite(place: string, login: string, lookup: Lookup): Promise<boolean> {
  if (!canCallGitHub(lookup.config)) return false;
  const key = `${lookup.config.apiUrl} ${place} ${login}`.toLowerCase();
  const known = cache.get(key);
  if (known && known.untilMs > lookup.nowMs) return known.member;
  const underWay = lookup.asking.get(key) ?? askOnce(key, place, login, lookup);
  lookup.asking.set(key, underWay);
  return underWay;
}

async function askOnce(key: string, place: string, login: string, lookup: Lookup): Promise<boolean> {
  const access = await askPermission(place, login, lookup.config).catch((error: unknown): Access => {
    if (!(error instanceof Fault)) throw error;
    logFault("github-permission", error, { place, login });
    return "unknown";
  });
  const member = access === "member";
  putNewest(cache, key, { member, untilMs: lookup.nowMs + cacheMs[access] }, maxCached);
  return member;
}

/** Throws a `Fault` where GitHub does not say. */
async function askPermission(place: string, login: string, config: Config["github"]): Promise<Exclude<Access, "unknown">> {
  const path = `/repos/${place}/collaborators/${encodeURIComponent(login)}/permission`;
  try {
    const answer = permission.safeParse(await callGitHub(config, { method: "GET", path, timeoutMs }));
    if (!answer.success) throw new Fault("provider", `GitHub's answer on ${login} cannot be read.`, { retry: "later" });
    return ["admin", "maintain", "write"].includes(answer.data.permission) ? "member" : "public";
  } catch (error) {
    if (error instanceof Fault && error.kind === "not_found") return "public";
    throw error;
  }
}

/** [RS4] Whether somebody who was of the team still is, asked anew. Where GitHub does not say, it is to be asked again: nobody loses access by an outage. */
export async function stillOfTeam(login: string, place: string, config: Config["github"]): Promise<boolean> {
  if (!canCallGitHub(config)) return false;
  try {
    return (await askPermission(place, login, config)) === "member";
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const wait = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
    throw new Fault("unavailable", `GitHub did not say whether ${login} may still write to ${place}.`, { ...wait, cause: error });
  }
}

/** [W31] The person of the team whose account this is, which is no program's, asked anew; null for everybody else. Throws where our records or GitHub do not say. */
export async function personOfTeam(
  login: string,
  place: string,
  { config, personOf }: Pick<Lookup, "config" | "personOf">,
): Promise<Principal | null> {
  const id = login.toLowerCase();
  const person = await personOf(id);
  if (person !== null) return person.revoked ? null : { role: "member", id: person.id, name: person.name };
  return (await stillOfTeam(login, place, config)) ? { role: "member", id, name: login } : null;
}
