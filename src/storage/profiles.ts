// Profiles in D1: each saved version whole, the highest of a name in force. Work goes on while D1 is away.
import { profileNamed, shippedProfiles } from "../core/profiles.ts";
import { Fault } from "../protocol/fault.ts";
import { type Profile, profile, type SavedProfile } from "../protocol/profile.ts";
import { workerTools } from "../protocol/worker-tools.ts";
import { InForce } from "./in-force.ts";

const inForce = new InForce<Profile[]>("profiles", readSaved, []);

/** The saved profiles in force, at most about 10 s old. While D1 is away: the last known ones. */
export const profilesInForce = (db: D1Database, nowMs: number): Promise<Profile[]> => inForce.get(db, nowMs);

async function readSaved(db: D1Database): Promise<Profile[]> {
  const { results } = await db
    .prepare("SELECT body FROM profiles AS p WHERE version = (SELECT MAX(version) FROM profiles WHERE name = p.name) ORDER BY name")
    .all<{ body: string }>();
  return results.flatMap(({ body }) => {
    const parsed = profile.safeParse(JSON.parse(body));
    return parsed.success ? [parsed.data] : [];
  });
}

/** [WP2] The profile that a task starts with. A name that is not known yet was saved a moment ago elsewhere: it is looked up once more. */
export async function profileFor(db: D1Database, name: string, nowMs: number): Promise<Profile> {
  const found = profileNamed(name, await profilesInForce(db, nowMs));
  if (found.name === name) return found;
  inForce.changed(db);
  return profileNamed(name, await profilesInForce(db, nowMs));
}

/** The shipped and the team's own, by name, as `profilesInForce` knows them. */
export const allInForce = async (db: D1Database, nowMs: number): Promise<Profile[]> => withShipped(await profilesInForce(db, nowMs));

/** Shipped profiles and the team's own, as they are in force. */
export const listProfiles = async (db: D1Database): Promise<Profile[]> => withShipped(await readSaved(db));

function withShipped(saved: readonly Profile[]): Profile[] {
  const names = [...new Set([...shippedProfiles, ...saved].map(({ name }) => name))].sort();
  return names.flatMap((name) => saved.find((each) => each.name === name) ?? shippedProfiles.find((each) => each.name === name) ?? []);
}

/** Every version of one profile, the newest first; version 0 is what ships. */
export async function profileVersions(db: D1Database, name: string): Promise<SavedProfile[]> {
  const { results } = await db
    .prepare("SELECT body, saved_by AS savedBy, saved_ms AS savedMs FROM profiles WHERE name = ? ORDER BY version DESC LIMIT 50")
    .bind(name)
    .all<{ body: string; savedBy: string; savedMs: number }>();
  const saved = results.flatMap(({ body, ...by }): SavedProfile[] => {
    const parsed = profile.safeParse(JSON.parse(body));
    return parsed.success ? [{ ...parsed.data, ...by }] : [];
  });
  return [...saved, ...shippedProfiles.filter((each) => each.name === name).map((each) => ({ ...each, savedBy: null, savedMs: null }))];
}

/** Saves a changed profile as its next version. `edited.version` is the one that was edited: when another was saved meanwhile, the caller hears `conflict`. */
export async function saveProfile(db: D1Database, edited: Profile, by: string, nowMs: number): Promise<Profile> {
  const next = { ...edited, version: edited.version + 1 };
  const strange = edited.tools.find((tool) => !Object.hasOwn(workerTools, tool));
  if (strange !== undefined)
    throw new Fault("bad_input", `There is no tool "${strange}". The tools are: ${Object.keys(workerTools).join(", ")}.`);
  const insert = db
    .prepare(
      "INSERT INTO profiles (name, version, body, saved_by, saved_ms) SELECT ?1, ?2 + 1, ?3, ?4, ?5 WHERE (SELECT COALESCE(MAX(version), 0) FROM profiles WHERE name = ?1) = ?2",
    )
    .bind(next.name, edited.version, JSON.stringify(next), by, nowMs);
  await inForce.save(db, insert, "this profile");
  return next;
}
