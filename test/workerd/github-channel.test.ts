import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { github } from "../../src/channels/github/index.ts";
import { readMarker } from "../../src/core/marker.ts";
import { type Env, readConfig } from "../../src/env.ts";
import { faultOf } from "./fault-of.ts";
import { control } from "./github-deliveries.ts";

const config = readConfig(env as unknown as Env);
type Comment = { id: number; body: string };
const commentsOf = async (place: string): Promise<Comment[]> =>
  (await control(`comments?place=${encodeURIComponent(place)}&number=12`)).json();
const misbehave = (place: string, faults: string[], retryAfter?: number) =>
  control("faults", { on: `/repos/${place}/issues/12/comments`, faults, ...(retryAfter === undefined ? {} : { retryAfter }) });

const message = (place: string, text = "Two tests fail.", threadKey = "issue:12") => ({
  outbound: { id: "out_abc-def", threadId: "thr_abc", kind: "reply" as const, text, hops: 0 },
  place,
  threadKey,
});
describe("sending", () => {
  test("posts one comment with its marker and the headers that GitHub asks for, and returns its number", async () => {
    const place = "send/ok";
    const { providerId } = await github.send(message(place, "Tests: 2 failed 😊"), config);
    const [comment, ...others] = await commentsOf(place);
    expect(others).toEqual([]);
    expect(String(comment?.id)).toBe(providerId);
    expect(readMarker(config.sessionSecret ?? "", comment?.body ?? "")).toEqual({ outboundId: "out_abc-def", body: "Tests: 2 failed 😊" });
    const [request] = (await (await control(`requests?contains=${place}`)).json()) as { headers: Record<string, string> }[];
    expect(request?.headers).toMatchObject({
      authorization: "Bearer test-github-token",
      accept: "application/vnd.github+json",
      "user-agent": "switchyard",
      "x-github-api-version": "2022-11-28",
    });
  });

  test("answers a pull request at the same place as an issue", async () => {
    await github.send(message("send/pull", "ok", "pull:12"), config);
    expect(await commentsOf("send/pull")).toHaveLength(1);
  });

  test("[Q14] cuts what is longer than GitHub takes, says that it is not all, and finds it again", async () => {
    const long = message("send/long", "😊".repeat(50_000));
    const sent = await github.send(long, config);
    expect(await github.find(long, config)).toEqual(sent);
    const body = (await commentsOf("send/long"))[0]?.body ?? "";
    expect(body.length).toBeLessThanOrEqual(65_536);
    expect(body).toMatch(/^(?:😊)+\n\n… \*This is only the beginning/u);
    expect(body).toContain(long.outbound.id);
  });

  test.each([
    ["401", "unauthorised", "never"],
    ["403", "forbidden", "never"],
    ["404", "not_found", "never"],
    ["410", "not_found", "never"],
    ["422", "bad_input", "never"],
    ["redirect", "provider", "never"],
    ["429", "rate_limited", "later"],
    ["secondary_limit", "rate_limited", "later"],
    ["primary_limit", "rate_limited", "later"],
    ["503", "unavailable", "later"],
    ["500", "unavailable", "unknown"],
    ["502", "unavailable", "unknown"],
    ["html", "provider", "unknown"],
    ["lost", "provider", "unknown"],
  ])("[R9] %s of GitHub is a %s that may be tried again: %s", async (fault, kind, retry) => {
    const place = `fault/${fault}`;
    await misbehave(place, [fault], 7);
    const error = await faultOf(github.send(message(place), config));
    expect(error).toMatchObject({ name: "Fault", kind, retry });
    expect(error.message).toMatch(/^[A-Z].{15,}/);
    expect(await commentsOf(place)).toEqual([]);
  });

  test("[R10] the time that GitHub asks us to wait is told", async () => {
    await misbehave("wait/after", ["429"], 42);
    expect((await faultOf(github.send(message("wait/after"), config))).retryAfterMs).toBe(42_000);
    await misbehave("wait/reset", ["primary_limit"], 120);
    const { retryAfterMs } = await faultOf(github.send(message("wait/reset"), config));
    expect(retryAfterMs).toBeGreaterThan(100_000);
    expect(retryAfterMs).toBeLessThanOrEqual(121_000);
    await misbehave("wait/some", ["secondary_limit"]);
    expect((await faultOf(github.send(message("wait/some"), config))).retryAfterMs).toBe(60_000);
  });

  test("nothing is sent to a branch, without a token, or without the secret of the marker", async () => {
    expect(await faultOf(github.send(message("no/where", "x", "branch:main"), config))).toMatchObject({
      kind: "bad_input",
      retry: "never",
    });
    const bare = { ...config, github: { ...config.github, token: null } };
    expect(await faultOf(github.send(message("no/token"), bare))).toMatchObject({
      retry: "never",
      message: expect.stringMatching(/^GITHUB_TOKEN is missing: /),
    });
    const unmarked = { ...config, sessionSecret: null };
    expect(await faultOf(github.send(message("no/secret"), unmarked))).toMatchObject({
      retry: "never",
      message: expect.stringMatching(/^SESSION_SECRET is missing/),
    });
    expect(await (await control("requests?contains=/repos/no/")).json()).toEqual([]);
  });
});

describe("finding an ambiguous message", () => {
  test("[R9] one that GitHub took before the connection broke is found", async () => {
    const place = "find/dropped";
    await misbehave(place, ["drop"]);
    expect(await faultOf(github.send(message(place), config))).toMatchObject({ retry: "unknown" });
    const [comment] = await commentsOf(place);
    expect(await github.find(message(place), config)).toEqual({ providerId: String(comment?.id) });
  });

  test("[R9] one that never arrived is not found, and another's marker does not count", async () => {
    const place = "find/lost";
    await misbehave(place, ["lost"]);
    await faultOf(github.send(message(place), config));
    await github.send({ ...message(place), outbound: { ...message(place).outbound, id: "out_abc-other" } }, config);
    expect(await github.find(message(place), config)).toBeNull();
  });

  test("it is found on a later page, and also when somebody edited it", async () => {
    const place = "find/many";
    for (let i = 0; i < 230; i++) await control("comment", { place, number: 12, body: `comment ${i}`, login: "dev" });
    const sent = await github.send(message(place), config);
    expect(await github.find(message(place), config)).toEqual(sent);
    const [marker] = /<!--.*-->/.exec((await commentsOf(place)).at(-1)?.body ?? "") ?? [];
    await control("comment", { place: "find/edited", number: 12, body: `Edited by a person.\n\n${marker}` });
    expect(await github.find(message("find/edited"), config)).not.toBeNull();
  });

  test("a failure of the list itself is tried later, and says nothing about the message", async () => {
    const place = "find/failing";
    for (const fault of ["500", "lost", "html"]) {
      await misbehave(place, [fault]);
      expect(await faultOf(github.find(message(place), config))).toMatchObject({ retry: "later" });
    }
  });
});
