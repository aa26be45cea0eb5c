// Configuration is read once, at the door. Nothing deeper reads the environment.
import type { Price } from "./protocol/costs.ts";
import { limits } from "./protocol/limits.ts";
import type { BoardRpc, EndpointRpc, RouterRpc, ThreadRpc, WorkerSessionRpc } from "./protocol/rpc.ts";

type ObjectStub<T> = T & { fetch(request: Request): Promise<Response> };
/** A namespace of objects that speak `T`; names are ids (`thr_…`), or the constant of a singleton. */
export type Objects<T> = { getByName(name: string): ObjectStub<T> };

/** Minds that may each have a model of their own. */
const modelRoles = ["router", "worker", "gate", "watchdog"] as const;
export type ModelRole = (typeof modelRoles)[number];
type ModelSetting = "PROVIDER" | "BASE_URL" | "API_KEY" | "NAME" | "PRICE";
/** `ROUTER_MODEL_NAME`, `WATCHDOG_MODEL_PROVIDER` …: what one role has instead of the common `MODEL_…`. */
type RoleSettings = Partial<Record<`${Uppercase<ModelRole>}_MODEL_${ModelSetting}`, string>>;

/** The Workers AI binding, as far as we use it. */
export type AiBinding = {
  run(model: string, input: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<unknown>;
};

/** Bindings as wrangler.toml names them. */
export interface Env extends RoleSettings {
  ROUTER: Objects<RouterRpc>;
  THREAD: Objects<ThreadRpc>;
  WORKER_SESSION: Objects<WorkerSessionRpc>;
  ENDPOINT: Objects<EndpointRpc>;
  BOARD: Objects<BoardRpc>;
  DB: D1Database;
  STORE: R2Bucket;
  ASSETS: Fetcher;
  /** Only for the provider `workers-ai`. */
  AI?: AiBinding;

  SESSION_SECRET?: string;
  OPERATOR_TOKEN?: string;
  GITHUB_WEBHOOK_SECRET?: string;
  GITHUB_TOKEN?: string;
  /** A GitHub App instead of, or beside, the token: its number, and its private key as GitHub gives it (PEM). */
  GITHUB_APP_ID?: string;
  GITHUB_APP_PRIVATE_KEY?: string;
  /** Of a GitHub Enterprise server; api.github.com by default. */
  GITHUB_API_URL?: string;
  /** Whom people mention at GitHub: the account's login, or the App's name in its address. */
  GITHUB_LOGIN?: string;
  /** Of both doors for signed messages: /hooks/chat and /hooks/generic. */
  GENERIC_WEBHOOK_SECRET?: string;
  /** Where answers to them are posted. */
  GENERIC_REPLY_URL?: string;
  /** What it is called in the widget and in its own words. */
  AGENT_NAME?: string;
  /** IANA zone in which schedules are read where nobody names one; UTC by default. */
  TIME_ZONE?: string;
  /** Comma-separated origins whose pages may frame the widget; the Worker's own is always allowed. `*` allows all. */
  WIDGET_ORIGINS?: string;
  /** Comma-separated host names under which pages may reach widget and console; all when absent. The local start names this machine. */
  ALLOWED_HOSTS?: string;
  /** Turns the door's limits up (or down) for all sources: `2` lets twice as much in. */
  DOOR_LIMIT_FACTOR?: string;
  MODEL_PROVIDER?: string;
  MODEL_BASE_URL?: string;
  MODEL_API_KEY?: string;
  MODEL_NAME?: string;
  /** How long one call of a model may take. */
  MODEL_TIMEOUT_MS?: string;
  /** Dollars for a million tokens read and written, such as `3/15`: what work cost is shown in money too. */
  MODEL_PRICE?: string;
  /** Kill tests only: a loopback address that is told each fault point as it is reached. */
  FAULT_URL?: string;
}
/** The same, as Hono's doors are told of it. */
export type AppEnv = { Bindings: Env };

export const routerName = "router";
export const boardName = "board";

const providerNames = ["offline", "openai-compatible", "anthropic", "workers-ai"] as const;
export type ModelProvider = (typeof providerNames)[number];

export type ModelConfig = {
  provider: ModelProvider;
  baseUrl: string;
  apiKey: string;
  modelName: string;
  timeoutMs: number;
  /** Null when nobody said: then only calls and tokens are counted. */
  price: Price;
  /** A sentence for people when the settings cannot work; then every call fails with it at once. */
  problem: string | null;
  /** Of `workers-ai`, which has no address and no key. */
  binding?: AiBinding;
};

export type GitHubApp = { id: string; privateKey: string };

export type Config = {
  agentName: string;
  timeZone: string;
  sessionSecret: string | null;
  operatorToken: string | null;
  widgetOrigins: string[];
  allowedHosts: string[];
  doorLimitFactor: number;
  github: { webhookSecret: string | null; token: string | null; app: GitHubApp | null; apiUrl: string; login: string };
  generic: { webhookSecret: string | null; replyUrl: string | null };
  model: Record<ModelRole, ModelConfig>;
  faultUrl: string | null;
};

const present = (value: string | undefined): string | null => {
  const trimmed = value?.trim();
  return trimmed ? trimmed : null;
};

/** Both or none: half an App is as if it were absent, and `/health` says what is missing. */
function githubApp(env: Env): GitHubApp | null {
  const id = present(env.GITHUB_APP_ID);
  const privateKey = present(env.GITHUB_APP_PRIVATE_KEY);
  return id !== null && privateKey !== null ? { id, privateKey } : null;
}

const positive = (value: string | undefined): number | null => {
  const number = Number(present(value) ?? Number.NaN);
  return Number.isFinite(number) && number > 0 ? number : null;
};

function priceOf(setting: string | null): ModelConfig["price"] {
  const [, input, output] = /^(\d+(?:\.\d+)?)\s*\/\s*(\d+(?:\.\d+)?)$/.exec(setting ?? "") ?? [];
  return input === undefined || output === undefined ? null : { inputDollars: Number(input), outputDollars: Number(output) };
}

const anthropicBaseUrl = "https://api.anthropic.com/v1";

/** The model of a role. Address and key belong to a provider: a role with another one never gets those of the common settings. */
function modelConfig(env: Env, role: ModelRole): ModelConfig {
  const common = present(env.MODEL_PROVIDER) ?? "offline";
  const prefix = `${role.toUpperCase() as Uppercase<ModelRole>}_MODEL` as const;
  const asked = present(env[`${prefix}_PROVIDER`]) ?? common;
  const own = (setting: ModelSetting): string | null =>
    present(env[`${prefix}_${setting}`]) ?? (asked === common ? present(env[`MODEL_${setting}`]) : null);
  const givenMs = Number(present(env.MODEL_TIMEOUT_MS) ?? limits.modelCallTimeoutMs);
  const timeoutMs = Number.isFinite(givenMs) && givenMs > 0 ? givenMs : limits.modelCallTimeoutMs;
  const provider = providerNames.find((name) => name === asked);
  const baseUrl = own("BASE_URL") ?? (provider === "anthropic" ? anthropicBaseUrl : null);
  const named = { BASE_URL: baseUrl, API_KEY: own("API_KEY"), NAME: own("NAME") };
  const price = priceOf(own("PRICE"));
  const base = { baseUrl: baseUrl ?? "", apiKey: named.API_KEY ?? "", modelName: named.NAME ?? "", timeoutMs, price, problem: null };
  const from = present(env[`${prefix}_PROVIDER`]) === null ? "MODEL" : prefix;
  if (provider === undefined)
    return {
      ...base,
      provider: "openai-compatible",
      problem: `${from}_PROVIDER is "${asked}"; it must be one of ${providerNames.map((name) => `"${name}"`).join(", ")}.`,
    };
  if (provider === "offline") return { ...base, provider, baseUrl: "http://offline.invalid/v1", apiKey: "", modelName: "offline" };
  if (timeoutMs !== givenMs) return { ...base, provider, problem: "MODEL_TIMEOUT_MS must be a number of milliseconds above 0." };
  const needed = provider === "workers-ai" ? (["NAME"] as const) : (["BASE_URL", "API_KEY", "NAME"] as const);
  const missing: string[] = needed
    .filter((setting) => named[setting] === null)
    .map((setting) => `${asked === common ? "MODEL" : prefix}_${setting}`);
  if (provider === "workers-ai" && env.AI === undefined) missing.unshift("the binding AI (see wrangler.toml)");
  const binding = provider === "workers-ai" && env.AI !== undefined ? { binding: env.AI } : {};
  if (missing.length > 0)
    return {
      ...base,
      ...binding,
      provider,
      problem: `${from}_PROVIDER is "${provider}", but ${missing.join(", ")} ${missing.length > 1 ? "are" : "is"} missing.`,
    };
  if (provider === "workers-ai") return { ...base, ...binding, provider, baseUrl: "http://workers-ai.invalid/v1", apiKey: "" };
  if (!URL.canParse(base.baseUrl) || !/^https?:$/.test(new URL(base.baseUrl).protocol))
    return { ...base, provider, problem: `${asked === common ? "MODEL" : prefix}_BASE_URL must be an http or https address.` };
  return { ...base, provider };
}

/** The first thing that keeps a role from working, as a sentence for people; null when all can work. */
export const modelProblem = (config: Config): string | null =>
  modelRoles.map((role) => config.model[role].problem).find((problem) => problem !== null) ?? null;

const listOf = (value: string | undefined): string[] =>
  (value ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);

const configs = new WeakMap<Env, Config>();

/** Reads and checks the configuration; the same object for the same environment. */
export function readConfig(env: Env): Config {
  const known = configs.get(env);
  if (known) return known;
  const config: Config = {
    agentName: present(env.AGENT_NAME) ?? "Switchyard",
    timeZone: present(env.TIME_ZONE) ?? "UTC",
    sessionSecret: present(env.SESSION_SECRET),
    operatorToken: present(env.OPERATOR_TOKEN),
    widgetOrigins: listOf(env.WIDGET_ORIGINS),
    allowedHosts: listOf(env.ALLOWED_HOSTS?.toLowerCase()),
    doorLimitFactor: positive(env.DOOR_LIMIT_FACTOR) ?? 1,
    github: {
      webhookSecret: present(env.GITHUB_WEBHOOK_SECRET),
      token: present(env.GITHUB_TOKEN),
      app: githubApp(env),
      apiUrl: present(env.GITHUB_API_URL) ?? "https://api.github.com",
      login: present(env.GITHUB_LOGIN) ?? "switchyard-bot",
    },
    generic: { webhookSecret: present(env.GENERIC_WEBHOOK_SECRET), replyUrl: present(env.GENERIC_REPLY_URL) },
    model: {
      router: modelConfig(env, "router"),
      worker: modelConfig(env, "worker"),
      gate: modelConfig(env, "gate"),
      watchdog: modelConfig(env, "watchdog"),
    },
    faultUrl: present(env.FAULT_URL),
  };
  configs.set(env, config);
  return config;
}
