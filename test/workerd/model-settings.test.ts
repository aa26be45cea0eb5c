import { createExecutionContext } from "cloudflare:test";
import { expect, test } from "vitest";
import { app } from "../../src/entry/app.ts";
import { type Env, modelProblem, readConfig } from "../../src/env.ts";
import { aiBinding } from "../support/ai-binding.ts";
import { bindings } from "./widget-page.ts";

const bare = Object.fromEntries(Object.entries(bindings).filter(([name]) => !name.startsWith("MODEL_"))) as unknown as Env;
const configOf = (settings: Partial<Env>) => readConfig({ ...bare, ...settings });
const real = {
  MODEL_PROVIDER: "openai-compatible",
  MODEL_BASE_URL: "https://api.example.com/v1",
  MODEL_API_KEY: "key-of-the-example",
  MODEL_NAME: "large",
};

test("without settings every role has the offline model", () => {
  const { model } = configOf({});
  expect(Object.values(model).map(({ provider }) => provider)).toEqual(["offline", "offline", "offline", "offline"]);
});

test("a role may have a model of its own at the same provider", () => {
  const { model } = configOf({ ...real, GATE_MODEL_NAME: "small" });
  expect(model.gate).toMatchObject({ provider: "openai-compatible", modelName: "small", apiKey: real.MODEL_API_KEY, problem: null });
  expect(model.router).toMatchObject({ modelName: "large", problem: null });
});

test("a role with another provider never gets the address or the key of the common one", () => {
  const config = configOf({ ...real, WATCHDOG_MODEL_PROVIDER: "anthropic", WATCHDOG_MODEL_NAME: "watcher" });
  expect(config.model.watchdog.problem).toBe('WATCHDOG_MODEL_PROVIDER is "anthropic", but WATCHDOG_MODEL_API_KEY is missing.');
  expect(JSON.stringify(config.model.watchdog)).not.toContain(real.MODEL_API_KEY);
  expect(modelProblem(config)).toBe(config.model.watchdog.problem);
  const own = configOf({ ...real, WATCHDOG_MODEL_PROVIDER: "anthropic", WATCHDOG_MODEL_NAME: "watcher", WATCHDOG_MODEL_API_KEY: "own" });
  expect(own.model.watchdog).toMatchObject({ baseUrl: "https://api.anthropic.com/v1", apiKey: "own", problem: null });
  expect(modelProblem(own)).toBeNull();
  expect(configOf({ ...real, WORKER_MODEL_PROVIDER: "offline" }).model.worker).toMatchObject({ provider: "offline", problem: null });
});

test("Anthropic needs a key and a name, Workers AI its binding and a name; what is missing is said", () => {
  expect(modelProblem(configOf({ MODEL_PROVIDER: "anthropic" }))).toBe(
    'MODEL_PROVIDER is "anthropic", but MODEL_API_KEY, MODEL_NAME are missing.',
  );
  expect(modelProblem(configOf({ MODEL_PROVIDER: "workers-ai", MODEL_NAME: "@cf/some/model" }))).toBe(
    'MODEL_PROVIDER is "workers-ai", but the binding AI (see wrangler.toml) is missing.',
  );
  expect(modelProblem(configOf({ MODEL_PROVIDER: "workers-ai", MODEL_NAME: "@cf/some/model", AI: aiBinding("chat") }))).toBeNull();
});

test("a provider that there is not, an address that is none and a time that is no number are named", () => {
  expect(modelProblem(configOf({ MODEL_PROVIDER: "telepathy" }))).toContain('MODEL_PROVIDER is "telepathy"; it must be one of "offline"');
  expect(modelProblem(configOf({ ...real, MODEL_BASE_URL: "nowhere" }))).toBe("MODEL_BASE_URL must be an http or https address.");
  expect(modelProblem(configOf({ ...real, MODEL_TIMEOUT_MS: "soon" }))).toBe("MODEL_TIMEOUT_MS must be a number of milliseconds above 0.");
});

test("/health names the models that answer, and no model that nobody asks", async () => {
  const noteWith = async (settings: Partial<Env>): Promise<string> => {
    const answer = await app.fetch(new Request("https://switchyard.test/health"), { ...bare, ...settings }, createExecutionContext());
    return (await answer.json<{ model: { note: string } }>()).model.note;
  };
  expect(await noteWith({ ...real, GATE_MODEL_NAME: "small" })).toBe('The settings are complete: "large" is used.');
  expect(await noteWith({ ...real, WORKER_MODEL_NAME: "small" })).toBe(
    'The settings are complete: the router uses "large", workers use "small".',
  );
  expect(await noteWith({ WATCHDOG_MODEL_NAME: "small" })).toContain("The embedded offline provider answers.");
});
