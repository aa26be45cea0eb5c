// Two hundred posts and some tasks while workerd is killed (-9) at random moments: what was accepted is decided, answered and run once.
import { createHmac } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ownerOf } from "../../src/core/ids.ts";
import type { Logged } from "../../src/protocol/events.ts";
import { type GitHubServer, startGitHubServer } from "../support/github-server.ts";
import { checkHistory } from "../support/history.ts";
import { eventually, System } from "../support/system.ts";

const seed = 4242;
const posts = 200;
const issues = 40;
const tasks = 6;
const kills = 5;

let system: System;
let github: GitHubServer;
let workspace: string;

beforeAll(async () => {
  github = await startGitHubServer();
  for (let i = 0; i < issues; i++) github.permit("acme/app", `dev${i}`, "write");
  system = await System.start({ bindings: { GITHUB_TOKEN: "token", GITHUB_API_URL: github.url, DOOR_LIMIT_FACTOR: "1000" } });
  workspace = path.join(system.folder, "workspace");
  mkdirSync(workspace);
  await system.daemon(workspace);
});
afterAll(async () => {
  await system.stop();
  await github.close();
});

/** A linear congruential generator (Numerical Recipes' constants): the same storm each time. */
function random(from: number): () => number {
  let state = from;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function commentBody(i: number): string {
  const user = { login: `dev${i % issues}`, type: "User" };
  const number = (i % issues) + 1;
  return JSON.stringify({
    action: "created",
    repository: { full_name: "acme/app", id: 7 },
    sender: user,
    issue: {
      number,
      id: 1000 + number,
      title: "T",
      body: "b",
      html_url: `https://github.com/acme/app/issues/${number}`,
      user,
      author_association: "MEMBER",
    },
    comment: {
      id: 5000 + i,
      body: `${i % 4 === 0 ? "@switchyard-bot hello" : "a remark"} ${i}`,
      html_url: "https://github.com/acme/app/issues/1",
      user,
      author_association: "MEMBER",
    },
  });
}

/** Delivers until it is accepted, as GitHub and its sweep do in the end; returns the trigger ids of the 2xx. */
async function deliver(i: number, wait: () => number): Promise<string[]> {
  const body = commentBody(i);
  return eventually(
    `an answer to delivery ${i}`,
    async () => {
      await sleep(wait());
      const response = await fetch(`${system.origin}/hooks/github`, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/json",
          "x-github-event": "issue_comment",
          "x-github-delivery": `storm-${i}`,
          "x-hub-signature-256": `sha256=${createHmac("sha256", "s3cret").update(body).digest("hex")}`,
        },
        signal: AbortSignal.timeout(15_000),
      });
      const answer = (await response.json()) as { triggers?: { id: string }[] };
      return response.status === 202 ? (answer.triggers ?? []).map(({ id }) => id) : undefined;
    },
    90_000,
  );
}

test("[R1][R3][R12] every accepted id ends decided, every task is answered once, every command ran once", {
  timeout: 400_000,
}, async () => {
  const rnd = random(seed);
  let storming = true;
  const killer = (async () => {
    for (let n = 0; n < kills && storming; n++) {
      await sleep(500 + rnd() * 2_500);
      system.killWorkerd();
      await eventually(
        "the Worker back",
        async () => (await fetch(`${system.origin}/health`, { signal: AbortSignal.timeout(2_000) })).ok,
        60_000,
      );
    }
  })();
  const [accepted] = await Promise.all([
    Promise.all(Array.from({ length: posts }, (_, i) => sleep(rnd() * 12_000).then(() => deliver(i, () => rnd() * 400)))),
    Promise.all(
      Array.from({ length: tasks }, (_, i) =>
        sleep(rnd() * 8_000).then(() => system.sendSurely(`run \`echo storm${i}x >> storm${i}.log && cat storm${i}.log\``)),
      ),
    ),
  ]);
  storming = false;
  await killer;

  const answers = async (i: number) =>
    (await system.conversation()).filter(({ row }) => row.kind === "reply" && row.replyKind === "relay" && row.text.includes(`storm${i}x`))
      .length;
  for (let i = 0; i < tasks; i++) await eventually(`the answer to task ${i}`, async () => (await answers(i)) > 0, 120_000);

  const threads = [
    ...new Set([
      ...accepted.flat().map((id) => ownerOf(id, "thr") ?? ""),
      ...(await system.conversation()).map(({ threadId }) => threadId),
    ]),
  ];
  const logs = await eventually(
    "a history without a violation",
    async () => {
      const read = async (object: string, kind: "thread" | "router" | "task" | "endpoint", binding: Parameters<System["events"]>[0]) => ({
        object,
        kind,
        events: await system.events(binding, object),
      });
      const found = [
        await read("router", "router", "ROUTER"),
        ...(await Promise.all(threads.map((thread) => read(thread, "thread", "THREAD")))),
      ];
      const events: Logged[] = found.flatMap((log) => log.events);
      const taskIds = [...new Set(events.flatMap(({ event }) => (event.kind === "thread.subscribed" ? [event.taskId] : [])))];
      const sessions = await Promise.all(taskIds.map((task) => read(task, "task", "WORKER_SESSION")));
      const machines = [
        ...new Set(
          sessions.flatMap((log) =>
            log.events.flatMap(({ event }) =>
              event.kind === "task.tool" && event.commandId ? [ownerOf(event.commandId, "ep") ?? ""] : [],
            ),
          ),
        ),
      ];
      const all = [...found, ...sessions, ...(await Promise.all(machines.map((machine) => read(machine, "endpoint", "ENDPOINT"))))];
      return checkHistory(all).length === 0 ? all : undefined;
    },
    60_000,
  );
  expect(logs.length).toBeGreaterThan(issues);
  for (let i = 0; i < tasks; i++) {
    expect(await answers(i)).toBe(1);
    expect(readFileSync(path.join(workspace, `storm${i}.log`), "utf8")).toBe(`storm${i}x\n`);
  }
  // [R9] No comment of ours stands twice at GitHub.
  const comments = await Promise.all(
    Array.from(
      { length: issues },
      async (_, i) => (await (await fetch(`${github.url}/control/comments?place=acme/app&number=${i + 1}`)).json()) as { body: string }[],
    ),
  );
  const markers = comments.flat().flatMap(({ body }) => /switchyard:(out_[a-z0-9-]+)/.exec(body)?.[1] ?? []);
  expect(new Set(markers).size).toBe(markers.length);
  expect(markers.length).toBeGreaterThan(0);
});
