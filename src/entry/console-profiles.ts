// The console's door to profiles: the roles that tasks are given.
import { Hono } from "hono";
import type { ProfileAnswer, ProfilesAnswer, ProfileVersionsAnswer } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { profile } from "../protocol/profile.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { listProfiles, profileVersions, saveProfile } from "../storage/profiles.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { operator } from "./console-objects.ts";
import { bodyOf } from "./json-body.ts";

/** Mounted behind the console's sign-in: whoever is there acts as the owner. */
export const profilesDoor = new Hono<ConsoleEnv>();

profilesDoor.get("/", async (c) => c.json({ profiles: await fromD1(c.env.DB, listProfiles) } satisfies ProfilesAnswer));

profilesDoor.get("/:name", async (c) => {
  const versions = await fromD1(c.env.DB, (db) => profileVersions(db, c.req.param("name")));
  if (versions.length === 0) throw new Fault("not_found", "There is no such profile.");
  return c.json({ versions } satisfies ProfileVersionsAnswer);
});

profilesDoor.post("/", async (c) => {
  const edited = await bodyOf(c, profile);
  const saved = await fromD1(c.env.DB, (db) => saveProfile(db, edited, operator.id, Date.now()));
  return c.json({ profile: saved } satisfies ProfileAnswer, 201);
});
