// What every channel must do, over all of them: a new channel is one line in `channels` below.
import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import type { OutboundMessage } from "../../src/channels/channel.ts";
import type { SignedSource } from "../../src/channels/generic/parse.ts";
import { channelOf } from "../../src/channels/registry.ts";
import { type Config, type Env, readConfig } from "../../src/env.ts";
import type { Fault } from "../../src/protocol/fault.ts";

const config = readConfig(env as unknown as Env);

/** A provider that can misbehave, and the place that a test uses there alone. */
type Provider = {
  where(name: string): { place: string; threadKey: string };
  misbehave(name: string, faults: string[], retryAfter?: number): Promise<unknown>;
  /** Texts that people see there. */
  shown(name: string): Promise<string[]>;
  without: [setting: string, config: Config][];
};

const post = (url: string, body: unknown) => fetch(url, { method: "POST", body: JSON.stringify(body) });

/** One bridge behind both doors of the generic webhook. */
const bridge = (source: SignedSource): Provider => ({
  where: (name) => ({ place: `contract-${source}-${name}`, threadKey: "thread:T1" }),
  misbehave: (name, faults, retryAfter) =>
    post("http://generic.test/control/faults", { on: `${source}-${name}`, faults, ...(retryAfter === undefined ? {} : { retryAfter }) }),
  shown: async (name) => {
    const answer = await fetch(`http://generic.test/control/messages?contains=contract-${source}-${name}`);
    return ((await answer.json()) as { body: { text: string } }[]).map(({ body }) => body.text);
  },
  without: [
    ["GENERIC_REPLY_URL", { ...config, generic: { ...config.generic, replyUrl: null } }],
    ["GENERIC_WEBHOOK_SECRET", { ...config, generic: { ...config.generic, webhookSecret: null } }],
  ],
});

const providers: Record<string, Provider | null> = {
  /** The row in the log is the delivery: there is no provider that could fail. */
  web: null,
  github: {
    where: (name) => ({ place: `contract/${name}`, threadKey: "issue:12" }),
    misbehave: (name, faults, retryAfter) =>
      post("http://github.test/control/faults", {
        on: `/repos/contract/${name}/`,
        faults,
        ...(retryAfter === undefined ? {} : { retryAfter }),
      }),
    shown: async (name) => {
      const answer = await fetch(`http://github.test/control/comments?place=contract/${name}&number=12`);
      return ((await answer.json()) as { body: string }[]).map(({ body }) => body);
    },
    without: [
      ["GITHUB_TOKEN", { ...config, github: { ...config.github, token: null } }],
      ["SESSION_SECRET", { ...config, sessionSecret: null }],
    ],
  },
  generic: bridge("generic"),
  chat: bridge("chat"),
};

const faultOf = async (work: Promise<unknown>): Promise<Fault> =>
  work.then(
    () => Promise.reject(new Error("it did not fail")),
    (error: unknown) => error as Fault,
  );

describe.each(Object.entries(providers))("the channel %s", (source, provider) => {
  const channel = channelOf(source);
  if (!channel) throw new Error(`there is no channel ${source}`);
  // The name is part of the id, so that a fault can be scripted for one message by its address alone.
  const messageAt = (name: string, text = "Two tests fail."): OutboundMessage => ({
    outbound: { id: `out_abc-${source}-${name}`, threadId: "thr_abc", kind: "reply", text, hops: 0 },
    ...(provider?.where(name) ?? { place: "widget", threadKey: "root:x" }),
  });

  test("names the source that its triggers name", () => {
    expect(channel.source).toBe(source);
  });

  test("what was sent has a provider's id, and is found under the same one", async () => {
    const sent = await channel.send(messageAt("plain"), config);
    expect(sent.providerId.length).toBeGreaterThan(0);
    expect(await channel.find(messageAt("plain"), config)).toEqual(sent);
  });

  if (!provider) return;

  test("a text arrives whole, in every script", async () => {
    const text = "Tests: 2 failed 😊 – 部署 🇩🇪 café\n\n```\nx = 1\n```";
    await channel.send(messageAt("script", text), config);
    const [shown, ...others] = await provider.shown("script");
    expect(shown).toContain(text);
    expect(others).toEqual([]);
  });

  test("[R9] what was never sent is not found, also beside another message of ours", async () => {
    expect(await channel.find(messageAt("absent"), config)).toBeNull();
    const other = messageAt("absent");
    await channel.send({ ...other, outbound: { ...other.outbound, id: `${other.outbound.id}-other` } }, config);
    expect(await channel.find(messageAt("absent"), config)).toBeNull();
  });

  test("[R9] a message that was taken before the connection broke is unknown, and then found; one that was lost is not", async () => {
    await provider.misbehave("dropped", ["drop"]);
    expect(await faultOf(channel.send(messageAt("dropped"), config))).toMatchObject({ retry: "unknown" });
    expect(await channel.find(messageAt("dropped"), config)).not.toBeNull();
    expect(await provider.shown("dropped")).toHaveLength(1);
    await provider.misbehave("missing", ["lost"]);
    expect(await faultOf(channel.send(messageAt("missing"), config))).toMatchObject({ retry: "unknown" });
    expect(await channel.find(messageAt("missing"), config)).toBeNull();
    expect(await provider.shown("missing")).toEqual([]);
  });

  test.each([
    ["401", "never"],
    ["404", "never"],
    ["422", "never"],
    ["redirect", "never"],
    ["429", "later"],
    ["503", "later"],
    ["500", "unknown"],
  ])("[R10] %s is a sentence for people, and may be tried again: %s", async (fault, retry) => {
    await provider.misbehave(`fault-${fault}`, [fault]);
    const error = await faultOf(channel.send(messageAt(`fault-${fault}`), config));
    expect(error).toMatchObject({ name: "Fault", retry });
    expect(error.message).toMatch(/^[A-Z].{15,}/);
    expect(await provider.shown(`fault-${fault}`)).toEqual([]);
  });

  test("[R10] the time that the provider asks us to wait is told", async () => {
    await provider.misbehave("wait", ["429"], 42);
    expect((await faultOf(channel.send(messageAt("wait"), config))).retryAfterMs).toBe(42_000);
  });

  test("a failure of the look-up says nothing about the message", async () => {
    for (const fault of ["500", "lost"]) {
      await provider.misbehave("lookup", [fault]);
      expect(await faultOf(channel.find(messageAt("lookup"), config))).toMatchObject({ retry: "later" });
    }
  });

  test.each(provider.without)("without %s nothing is sent, and the sentence names it", async (setting, bare) => {
    const name = `bare-${setting.toLowerCase().replaceAll("_", "-")}`;
    expect(await faultOf(channel.send(messageAt(name), bare))).toMatchObject({ retry: "never", message: expect.stringContaining(setting) });
    expect(await provider.shown(name)).toEqual([]);
  });
});

test("the suite covers every channel that a trigger can come from", () => {
  for (const source of ["web", "github", "generic", "chat"]) expect(Object.keys(providers)).toContain(source);
  expect(channelOf("nowhere")).toBeNull();
});
