// GET /health: what a person who has just deployed this needs to know. Names of settings, never their values.
import { Hono } from "hono";
import { type AppEnv, type Config, type Env, modelProblem, readConfig } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { version } from "../protocol/version.ts";
import { type Fact, factNames, readFacts } from "../storage/facts.ts";
import { migrated } from "../storage/migrations.ts";
import { withTimeout } from "../timeout.ts";

const timeoutMs = 3_000;

type Missing = { name: string; purpose: string };

export const healthDoor = new Hono<AppEnv>();

healthDoor.get("/health", async (c) => {
  const config = readConfig(c.env);
  const missing = missingSecrets(config, c.env);
  const [d1, r2] = await Promise.all([d1State(c.env.DB), r2State(c.env.STORE)]);
  const ok = d1.reachable && r2.reachable;
  const problem = modelProblem(config);
  const body = {
    ok,
    status: !ok ? "failing" : missing.length > 0 || problem !== null ? "incomplete" : "ready",
    version,
    agent: config.agentName,
    missing,
    model: { ready: problem === null, note: problem ?? modelNote(config.model) },
    storage: { d1: d1.reachable ? "reachable" : d1.problem, r2: r2.reachable ? "reachable" : r2.problem },
    github: githubState(config, d1.reachable ? d1.facts : {}),
    generic: genericNote(config),
  };
  c.header("cache-control", "no-store");
  return c.json(body, ok ? 200 : 503);
});

function missingSecrets(config: Config, env: Env): Missing[] {
  const needed: (Missing & { present: boolean })[] = [
    {
      name: "SESSION_SECRET",
      purpose: "signs the sessions of people in the widget, and marks our own messages so that they are known when they come back",
      present: config.sessionSecret !== null,
    },
    { name: "OPERATOR_TOKEN", purpose: "opens the console, and the first invite link", present: config.operatorToken !== null },
    {
      name: "GITHUB_WEBHOOK_SECRET",
      purpose: "proves that a webhook comes from GitHub; without it /hooks/github accepts nothing",
      present: config.github.webhookSecret !== null,
    },
    {
      name: "GITHUB_TOKEN",
      purpose:
        "answers in issues and pull requests, and asks GitHub who may write to a repository; without it (or a GitHub App) everybody there is public",
      present: config.github.token !== null || config.github.app !== null,
    },
  ];
  const common = env.MODEL_PROVIDER?.trim() ?? "";
  if (common === "openai-compatible" || common === "anthropic")
    needed.push({ name: "MODEL_API_KEY", purpose: "opens the model provider", present: Boolean(env.MODEL_API_KEY?.trim()) });
  return needed.filter((each) => !each.present).map(({ name, purpose }) => ({ name, purpose }));
}

/** Roles whose model is asked by now; the others may be set. */
const asked = ["router", "worker"] as const;

function modelNote(model: Config["model"]): string {
  const used = asked.map((role) => ({ role, name: `"${model[role].modelName}"`, provider: model[role].provider }));
  if (used.every(({ provider }) => provider === "offline"))
    return "The embedded offline provider answers. Set MODEL_PROVIDER, MODEL_BASE_URL, MODEL_API_KEY and MODEL_NAME to use a real model.";
  if (new Set(used.map(({ name, provider }) => `${provider} ${name}`)).size === 1)
    return `The settings are complete: ${used[0]?.name ?? ""} is used.`;
  const who = { router: "the router uses", worker: "workers use" };
  return `The settings are complete: ${used.map(({ role, name }) => `${who[role]} ${name}`).join(", ")}.`;
}

function githubState(config: Config, facts: Partial<Record<string, Fact>>): Record<string, string | null> {
  const when = (fact: Fact | undefined): string | null => (fact ? new Date(fact.atMs).toISOString() : null);
  const ping = when(facts[factNames.githubPing]);
  const delivery = when(facts[factNames.githubDelivery]);
  const heard = ping ?? delivery;
  return {
    login: config.github.login,
    lastPing: ping,
    lastDelivery: delivery,
    note:
      config.github.webhookSecret === null
        ? "Not connected: GITHUB_WEBHOOK_SECRET is missing."
        : heard === null
          ? "No signed delivery has arrived yet. Point a webhook of your repository at /hooks/github, content type application/json."
          : "Signed deliveries arrive.",
  };
}

function genericNote({ generic }: Config): string {
  if (generic.webhookSecret === null)
    return "Closed: set GENERIC_WEBHOOK_SECRET to open /hooks/chat/PLACE and /hooks/generic/PLACE for signed messages.";
  return generic.replyUrl === null
    ? "Open for signed messages; nothing can be answered there until GENERIC_REPLY_URL is set."
    : "Open for signed messages; answers go to GENERIC_REPLY_URL.";
}

type D1State = { reachable: true; facts: Partial<Record<string, Fact>> } | { reachable: false; problem: string };

async function d1State(db: D1Database): Promise<D1State> {
  try {
    const facts = await withTimeout(
      migrated(db).then(() => readFacts(db)),
      timeoutMs,
      "D1",
    );
    return { reachable: true, facts };
  } catch (error) {
    logFault("health.d1", error);
    return { reachable: false, problem: "D1 cannot be reached: check the binding DB." };
  }
}

async function r2State(store: R2Bucket): Promise<{ reachable: true } | { reachable: false; problem: string }> {
  try {
    await withTimeout(store.head("health"), timeoutMs, "R2");
    return { reachable: true };
  } catch (error) {
    logFault("health.r2", error);
    return { reachable: false, problem: "R2 cannot be reached: check the binding STORE." };
  }
}
