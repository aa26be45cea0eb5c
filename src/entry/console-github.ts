// The console's door to how GitHub is set up. It shows names of settings, never their values.
import { Hono } from "hono";
import { gitHubSteps } from "../core/github-set-up.ts";
import type { GitHubSetUpAnswer } from "../protocol/console.ts";
import { factNames, readFacts } from "../storage/facts.ts";
import { fromD1 } from "../storage/from-d1.ts";
import type { ConsoleEnv } from "./console-access.ts";
import { sweptHooks } from "./redelivery.ts";

const isSet = (value: string | undefined): boolean => Boolean(value?.trim());

/** Mounted behind the console's sign-in. */
export const gitHubSetUpDoor = new Hono<ConsoleEnv>();

gitHubSetUpDoor.get("/", async (c) => {
  const { env } = c;
  const [facts, swept] = await fromD1(env.DB, (db) => Promise.all([readFacts(db), sweptHooks(db)]));
  const hooks = swept.map(({ hook, state, sweptMs }) => ({
    of: hook.of,
    place: hook.place,
    sweptMs,
    redelivered: state?.redelivered ?? 0,
    givenUp: state?.givenUp ?? 0,
    problem: state?.problem ?? null,
  }));
  const steps = gitHubSteps({
    origin: new URL(c.req.url).origin,
    secret: isSet(env.GITHUB_WEBHOOK_SECRET),
    token: isSet(env.GITHUB_TOKEN),
    appId: isSet(env.GITHUB_APP_ID),
    appKey: isSet(env.GITHUB_APP_PRIVATE_KEY),
    login: env.GITHUB_LOGIN?.trim() || null,
    heardMs: (facts[factNames.githubDelivery] ?? facts[factNames.githubPing])?.atMs ?? null,
    hooks,
  });
  return c.json({ steps, hooks } satisfies GitHubSetUpAnswer);
});
