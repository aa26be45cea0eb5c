// Pull requests, labels and answers in review threads: sent once, found again, and plain about what GitHub said.
import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { github } from "../../src/channels/github/index.ts";
import { readMarker } from "../../src/core/marker.ts";
import { type Env, readConfig } from "../../src/env.ts";
import type { Deed } from "../../src/protocol/thread.ts";
import { faultOf } from "./fault-of.ts";
import { control } from "./github-deliveries.ts";

const config = readConfig(env as unknown as Env);
const misbehave = (on: string, faults: (string | null)[], retryAfter?: number) =>
  control("faults", { on, faults, ...(retryAfter === undefined ? {} : { retryAfter }) });
type Pull = { number: number; title: string; body: string; head: { ref: string }; base: { ref: string }; draft: boolean };
const pullsOf = async (place: string): Promise<Pull[]> => (await control(`pulls?place=${place}`)).json();
const posts = async (path: string): Promise<number> =>
  ((await (await control(`requests?contains=POST ${path}`)).json()) as unknown[]).length;

const head = "switchyard/tsk_abc";
const pull: Deed = { do: "pull_request", head, base: "main", title: "Fix the parser", draft: false };
const message = (place: string, deed: Deed, threadKey: string, id = "out_abc-def") => ({
  outbound: { id, threadId: "thr_abc", kind: "offer" as const, text: "What and why.", hops: 0, deed },
  place,
  threadKey,
});
const pullIn = (place: string, id?: string) => message(place, pull, `branch:${head}`, id);
describe("a pull request", () => {
  test("is opened from the branch with our marker, and found again, also when it was closed", async () => {
    const place = "pulls/ok";
    const sent = await github.send(pullIn(place), config);
    const [made, ...others] = await pullsOf(place);
    expect(others).toEqual([]);
    expect(made).toMatchObject({
      number: Number(sent.providerId),
      title: "Fix the parser",
      head: { ref: head },
      base: { ref: "main" },
      draft: false,
    });
    expect(readMarker(config.sessionSecret ?? "", made?.body ?? "")).toEqual({ outboundId: "out_abc-def", body: "What and why." });
    expect(await github.find(pullIn(place), config)).toEqual(sent);
  });

  test.each(["drop", "500"])("[R9] after %s it is looked up: there it is taken, absent it is not", async (fault) => {
    const place = `pulls/${fault}`;
    await misbehave(`/repos/${place}/pulls`, [fault]);
    expect(await faultOf(github.send(pullIn(place), config))).toMatchObject({ retry: "unknown" });
    const there = fault === "drop";
    expect(await pullsOf(place)).toHaveLength(there ? 1 : 0);
    expect(await github.find(pullIn(place), config)).toEqual(there ? { providerId: String((await pullsOf(place))[0]?.number) } : null);
  });

  test("[R9] sent again although it is there, GitHub's refusal is read as the success that it was", async () => {
    const place = "pulls/twice";
    const first = await github.send(pullIn(place), config);
    expect(await github.send(pullIn(place), config)).toEqual(first);
    expect(await pullsOf(place)).toHaveLength(1);
  });

  test("one that somebody else opened from the branch is not taken for ours, and GitHub's words are passed on", async () => {
    const place = "pulls/others";
    await github.send(pullIn(place, "out_abc-other"), config);
    expect(await faultOf(github.send(pullIn(place), config))).toMatchObject({
      kind: "bad_input",
      retry: "never",
      message: expect.stringContaining("already exists for pulls:switchyard/tsk_abc"),
    });
    expect(await github.find(pullIn(place), config)).toBeNull();
  });

  test("[R10] a secondary rate limit is waited for", async () => {
    await misbehave("/repos/pulls/limit/pulls", ["secondary_limit"]);
    expect(await faultOf(github.send(pullIn("pulls/limit"), config))).toMatchObject({ retry: "later", retryAfterMs: 60_000 });
  });
});

describe("labels", () => {
  const labels = (place: string) => message(place, { do: "label", labels: ["bug", "parser"] }, "issue:12");

  test("are added once and found, whatever became of the answer", async () => {
    const place = "labels/ok";
    await misbehave(`/repos/${place}/issues/12/labels`, ["drop"]);
    expect(await github.find(labels(place), config).catch(() => null)).toBeNull();
    await misbehave(`POST /repos/${place}/issues/12/labels`, ["drop"]);
    expect(await faultOf(github.send(labels(place), config))).toMatchObject({ retry: "unknown" });
    const sent = await github.find(labels(place), config);
    expect(sent).toEqual({ providerId: "labels:12" });
    expect(await github.send(labels(place), config)).toEqual(sent);
    expect(await (await control(`labels?place=${place}&number=12`)).json()).toEqual(["bug", "parser"]);
  });

  test("that are not all there are not found; a branch takes none", async () => {
    await github.send(message("labels/some", { do: "label", labels: ["bug"] }, "issue:12"), config);
    expect(await github.find(labels("labels/some"), config)).toBeNull();
    expect(await faultOf(github.send(message("labels/none", { do: "label", labels: ["bug"] }, "branch:main"), config))).toMatchObject({
      kind: "bad_input",
    });
  });
});

describe("an answer to a review comment", () => {
  const answer = (place: string) => message(place, { do: "comment", inReplyTo: "77" }, "pull:12");

  test("stands in that review thread, and is found there", async () => {
    const place = "review/ok";
    await misbehave(`POST /repos/${place}/pulls/12/comments/77/replies`, ["drop"]);
    expect(await faultOf(github.send(answer(place), config))).toMatchObject({ retry: "unknown" });
    expect(await github.find(answer(place), config)).not.toBeNull();
    expect(await posts(`/repos/${place}/issues/12/comments`)).toBe(0);
  });

  test("goes into the pull request itself when that thread is gone, and is found there", async () => {
    const place = "review/gone";
    await misbehave(`/repos/${place}/pulls/12/comments/77/replies`, ["404"]);
    const sent = await github.send(answer(place), config);
    expect(await posts(`/repos/${place}/issues/12/comments`)).toBe(1);
    expect(await github.find(answer(place), config)).toEqual(sent);
  });
});
