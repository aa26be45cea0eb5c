// Configuration is read once, at the door. Nothing deeper reads the environment.
import { limits } from "./protocol/limits.ts";
import type { BoardRpc, EndpointRpc, RouterRpc, ThreadRpc, WorkerSessionRpc } from "./protocol/rpc.ts";

type ObjectStub<T> = T & { fetch(request: Request): Promise<Response> };
/** A namespace of objects that speak `T`; names are ids (`thr_…`), or the constant of a singleton. */
export type Objects<T> = { getByName(name: string): ObjectStub<T> };

/** Bindings as wrangler.toml names them. */
export interface Env {
  ROUTER: Objects<RouterRpc>;
  THREAD: Objects<ThreadRpc>;
  WORKER_SESSION: Objects<WorkerSessionRpc>;
  ENDPOINT: Objects<EndpointRpc>;
  BOARD: Objects<BoardRpc>;
  DB: D1Database;
  STORE: R2Bucket;
  ASSETS: Fetcher;

  SESSION_SECRET?: string;
  OPERATOR_TOKEN?: string;
  GITHUB_WEBHOOK_SECRET?: string;
  GITHUB_TOKEN?: string;
  /** A GitHub App instead of, or beside, the token: its number, and its private key as GitHub gives it (PEM). */
  GITHUB_APP_ID?: string;
  GITHUB_APP_PRIVATE_KEY?: string;
  GITHUB_API_URL?: string;
  GITHUB_LOGIN?: string;
  GENERIC_WEBHOOK_SECRET?: string;
  /** Where answers to the generic webhook are posted. */
  GENERIC_REPLY_URL?: string;
  AGENT_NAME?: string;
  /** IANA zone in which schedules are read where nobody names one; UTC by default. */
  TIME_ZONE?: string;
  /** Comma-separated origins whose pages may frame the widget; the Worker's own is always allowed. `*` allows all. */
  WIDGET_ORIGINS?: string;
  /** Turns the door's limits up (or down) for all sources: `2` lets twice as much in. */
  DOOR_LIMIT_FACTOR?: string;
  MODEL_PROVIDER?: string;
  MODEL_BASE_URL?: string;
  MODEL_API_KEY?: string;
  MODEL_NAME?: string;
  ROUTER_MODEL_NAME?: string;
  WORKER_MODEL_NAME?: string;
  MODEL_TIMEOUT_MS?: string;
  /** Kill tests only: a loopback address that is told each fault point as it is reached. */
  FAULT_URL?: string;
}

export const routerName = "router";
export const boardName = "board";

export type ModelConfig = {
  provider: "offline" | "openai-compatible";
  baseUrl: string;
  apiKey: string;
  modelName: string;
  timeoutMs: number;
  /** A sentence for people when the settings cannot work; then every call fails with it at once. */
  problem: string | null;
};

export type GitHubApp = { id: string; privateKey: string };

export type Config = {
  agentName: string;
  timeZone: string;
  sessionSecret: string | null;
  operatorToken: string | null;
  widgetOrigins: string[];
  doorLimitFactor: number;
  github: { webhookSecret: string | null; token: string | null; app: GitHubApp | null; apiUrl: string; login: string };
  generic: { webhookSecret: string | null; replyUrl: string | null };
  model: { router: ModelConfig; worker: ModelConfig };
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

function modelConfig(env: Env, roleModel: string | undefined): ModelConfig {
  const provider = present(env.MODEL_PROVIDER) ?? "offline";
  const timeoutMs = Number(present(env.MODEL_TIMEOUT_MS) ?? limits.modelCallTimeoutMs);
  const baseUrl = present(env.MODEL_BASE_URL);
  const apiKey = present(env.MODEL_API_KEY);
  const modelName = present(roleModel) ?? present(env.MODEL_NAME);
  if (provider === "offline")
    return { provider, baseUrl: "http://offline.invalid/v1", apiKey: "", modelName: "offline", timeoutMs, problem: null };
  const base = {
    provider: "openai-compatible" as const,
    baseUrl: baseUrl ?? "",
    apiKey: apiKey ?? "",
    modelName: modelName ?? "",
    timeoutMs,
  };
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    return { ...base, timeoutMs: limits.modelCallTimeoutMs, problem: "MODEL_TIMEOUT_MS must be a number of milliseconds above 0." };
  }
  if (provider !== "openai-compatible") {
    return { ...base, problem: `MODEL_PROVIDER is "${provider}"; it must be "offline" or "openai-compatible".` };
  }
  const missing = [
    ["MODEL_BASE_URL", baseUrl],
    ["MODEL_API_KEY", apiKey],
    ["MODEL_NAME", modelName],
  ]
    .filter(([, value]) => value === null)
    .map(([name]) => name);
  if (missing.length > 0)
    return {
      ...base,
      problem: `MODEL_PROVIDER is "openai-compatible", but ${missing.join(", ")} ${missing.length > 1 ? "are" : "is"} missing.`,
    };
  if (!URL.canParse(base.baseUrl) || !/^https?:$/.test(new URL(base.baseUrl).protocol))
    return { ...base, problem: "MODEL_BASE_URL must be an http or https address." };
  return { ...base, problem: null };
}

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
    widgetOrigins: (present(env.WIDGET_ORIGINS) ?? "")
      .split(",")
      .map((origin) => origin.trim())
      .filter(Boolean),
    doorLimitFactor: positive(env.DOOR_LIMIT_FACTOR) ?? 1,
    github: {
      webhookSecret: present(env.GITHUB_WEBHOOK_SECRET),
      token: present(env.GITHUB_TOKEN),
      app: githubApp(env),
      apiUrl: present(env.GITHUB_API_URL) ?? "https://api.github.com",
      login: present(env.GITHUB_LOGIN) ?? "switchyard-bot",
    },
    generic: { webhookSecret: present(env.GENERIC_WEBHOOK_SECRET), replyUrl: present(env.GENERIC_REPLY_URL) },
    model: { router: modelConfig(env, env.ROUTER_MODEL_NAME), worker: modelConfig(env, env.WORKER_MODEL_NAME) },
    faultUrl: present(env.FAULT_URL),
  };
  configs.set(env, config);
  return config;
}
