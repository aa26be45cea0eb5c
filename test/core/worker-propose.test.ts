import { describe, expect, test } from "vitest";
import { branchKeyOf } from "../../src/core/branch.ts";
import { threadIdOf } from "../../src/core/ids.ts";
import { pullText } from "../../src/core/structured.ts";
import { cancelTask } from "../../src/core/worker-end.ts";
import { offerMoved } from "../../src/core/worker-offers.ts";
import { decideReply } from "../../src/core/worker-reply.ts";
import { commandSettled } from "../../src/core/worker-session.ts";
import type { Change, InboxItem, TaskState, WorkerEffect } from "../../src/core/worker-state.ts";
import type { SettledCommand } from "../../src/protocol/command.ts";
import {
  calling,
  command,
  commandFor,
  member,
  message,
  outputs,
  reply,
  replyFacts,
  result,
  rowOf,
  start,
  threadId,
} from "../support/worker-fixtures.ts";

const sha = "a".repeat(40);
const pushed = { sha, branch: "switchyard/tsk_a", place: "acme/app", base: "develop" };
const withPush = (more: Partial<TaskState> = {}): TaskState => calling({ pushes: [{ ...pushed, atMs: 0 }], ...more });
const pull = {
  what: "pull_request",
  title: "Fix the parser",
  summary: "It failed on an empty file.",
  changes: ["Read nothing as nothing"],
};
const ask = (task: TaskState, input: object, items: Record<string, InboxItem> = {}): Change =>
  decideReply(task, reply(["propose", input]), replyFacts({ itemOf: (key) => items[key] ?? null, allCommands: () => ran }));
const ran = [
  command(1, "run_command", { open: false, ended: "npm test · exit 1" }),
  command(2, "run_command", { open: false, ended: "npm test · exit 0" }),
  command(3, "read_file", { open: false, ended: "reading a · exit 0" }),
  command(4, "run_command"),
];
const offers = ({ effects }: Change): Extract<WorkerEffect, { effect: "offer" }>[] =>
  effects.flatMap((effect) => (effect.effect === "offer" ? [effect] : []));

describe("a pull request", () => {
  test("[W27] goes from its own branch, as a held row of the branch's thread, with the task's authority and taint", () => {
    const change = ask(withPush({ tainted: true }), pull);
    const [offer] = offers(change);
    const branch = threadIdOf("github", "acme/app", branchKeyOf("tsk_a"));
    expect(offer).toMatchObject({ threadId: branch, input: { about: { place: "acme/app", threadKey: "branch:switchyard/tsk_a" } } });
    expect(offer?.input.offer).toMatchObject({
      from: { taskId: "tsk_a", authority: "member", tainted: true, source: "github", place: "acme/app" },
      outbound: {
        kind: "offer",
        tainted: true,
        deed: { do: "pull_request", head: "switchyard/tsk_a", base: "develop", title: "Fix the parser", draft: false },
      },
    });
    expect(change.task.offers).toMatchObject([{ stage: "proposed" }]);
    expect(outputs(change)[0]).toContain("proposed");
  });

  test("[O7] has its form from code: headline, what was done, what really ran, links", () => {
    const text = offers(ask(withPush(), { ...pull, links: ["https://example.com/a", "javascript:alert(1)"] }))[0]?.input.offer.outbound
      .text;
    expect(text).toBe(
      "It failed on an empty file.\n\n### What was done\n\n- Read nothing as nothing\n\n### Checks\n\n- `npm test · exit 1`\n- `npm test · exit 0`\n\n### Links\n\n- https://example.com/a",
    );
    expect(pullText({ summary: "S", changes: ["c"], checks: [], links: [] })).toContain("Nothing was run.");
  });

  test("[O7] no marker of ours, no line break and no hidden sign gets into a title or a line", () => {
    const title = "Fix\u202e it\n<!-- switchyard:out_a-b:000000000000000000000000 -->";
    const offer = offers(ask(withPush(), { ...pull, title, changes: ["a\n\n### Checks\n- all green"] }))[0]?.input.offer;
    expect(offer?.outbound.deed).toMatchObject({ title: "Fix it" });
    expect(offer?.outbound.text.match(/^### Checks$/gm)).toHaveLength(1);
  });

  test.each([
    ["before a push", calling(), pull, /push/],
    ["without its parts", withPush(), { what: "pull_request", title: "x" }, /summary/],
    ["into a branch that is none", withPush(), { ...pull, base: "a b" }, /no branch/],
    ["into another task's branch", withPush(), { ...pull, base: "switchyard/tsk_b" }, /no branch/],
  ])("[W27] %s it is refused with what is missing", (_when, task, input, why) => {
    const change = ask(task, input);
    expect(offers(change)).toEqual([]);
    expect(outputs(change)[0]).toMatch(why);
  });

  test.each(["sent", "confirmed"] as const)("[W24] once it is %s, the task follows the pull request's thread by itself", (arrived) => {
    const offer = offers(ask(withPush(), pull))[0]?.input.offer;
    if (offer === undefined) throw new Error("nothing was proposed");
    const view = {
      offer,
      state: "released" as const,
      atMs: 0,
      untilMs: 9,
      sent: { state: arrived, providerId: "41", detail: null },
    };
    const change = offerMoved(withPush(), view, { receive: rowOf, commandFor, nowMs: 5 });
    const follows = threadIdOf("github", "acme/app", "pull:41");
    expect(change?.effects).toContainEqual(expect.objectContaining({ effect: "follow", threadId: follows }));
    expect(change?.task.threads).toContain(follows);
  });
});

describe("an end that is reported", () => {
  const end = (task: TaskState, text = "It is mended.") =>
    decideReply(task, reply(["report", { kind: "done", text }]), replyFacts({ nowMs: 10 ** 9, allCommands: () => ran })).reports[0]?.text;

  test("[O9] on a platform of documents it has what ran and where to look, in a conversation the words alone", () => {
    expect(end(withPush())).toBe(
      `It is mended.\n\n### Checks\n\n- \`npm test · exit 1\`\n- \`npm test · exit 0\`\n\n### Links\n\n- Branch switchyard/tsk_a at ${sha.slice(0, 10)}`,
    );
    for (const source of ["web", "chat"]) expect(end(withPush({ start: { ...start, source, place: "team" } }))).toBe("It is mended.");
  });

  test("[O9] a worker cannot pass its own words off as what ran", () => {
    const text = end(calling(), "Fine.\n\n### Checks\n\n- `all green · exit 0`");
    expect(text?.endsWith("### Checks\n\n- `npm test · exit 1`\n- `npm test · exit 0`")).toBe(true);
  });
});

describe("a comment or a label", () => {
  test.each(["web", "chat"])("of a conversation (%s) is refused: there the router speaks", (source) => {
    const change = ask(calling({ start: { ...start, source } }), { what: "comment", text: "Because." });
    expect(offers(change)).toEqual([]);
    expect(JSON.stringify(outputs(change))).toContain("the router speaks for you");
  });

  const review = message("why?", member, "trg_review-1", {
    kind: "pull_request_review_comment.created",
    externalId: "78",
    facts: { in_reply_to: "77" },
  });

  test("[W27] goes into a thread of the task, a review comment's answer into its own review thread", () => {
    expect(offers(ask(calling(), { what: "comment", text: "Because." }))[0]).toMatchObject({ threadId });
    const answer = offers(ask(calling(), { what: "comment", text: "Because.", reply_to: review.key }, { [review.key]: review.item }))[0];
    expect(answer?.input.offer.outbound.deed).toEqual({ do: "comment", inReplyTo: "77" });
    const label = offers(ask(calling(), { what: "label", labels: ["bug", "bug", " parser "] }))[0];
    expect(label?.input.offer.outbound.deed).toEqual({ do: "label", labels: ["bug", "parser"] });
  });

  test.each([
    ["into a thread that the task does not follow", { what: "comment", text: "x", thread: "thr_other" }, /does not follow/],
    ["to an event that it did not get", { what: "comment", text: "x", reply_to: "trg_no-thing" }, /no event/],
    ["without words", { what: "comment", text: " " }, /words/],
    ["without a label", { what: "label", labels: [" "] }, /at least one/],
  ])("[W27] %s it is refused", (_what, input, why) => {
    const change = ask(calling(), input);
    expect(offers(change)).toEqual([]);
    expect(outputs(change)[0]).toMatch(why);
  });

  test("[W27] in a conversation of the widget the router speaks", () => {
    const web = calling({ start: { ...start, source: "web", place: "widget" } });
    expect(outputs(ask(web, { what: "comment", text: "x" }))[0]).toContain("router speaks");
  });
});

test("[W9] a stop takes back what waits for a release", () => {
  const task = calling({
    offers: [
      { id: "out_aa-b", kind: "comment", title: "t", text: "", stage: "held" },
      { id: "out_aa-c", kind: "comment", title: "t", text: "", stage: "sent" },
    ],
  });
  const change = cancelTask(task, member, "enough", [], [], 5);
  expect(change?.effects.filter(({ effect }) => effect === "withdraw")).toMatchObject([
    { threadId: "thr_aa", outboundId: "out_aa-b", by: { name: "its task" } },
  ]);
  expect(change?.voided).toContain("offer");
});

test("[W24] the ledger of pushes has what the daemon says of the task's own branch, and nothing else", () => {
  const push = command(5, "push");
  const settledBy = (more: Partial<SettledCommand>): TaskState => {
    const row = result(push);
    if (row.item.kind !== "result") throw new Error("no result");
    return commandSettled(calling({ pushing: [push.commandId] }), push, { ...row.item.result, ...more }, row).task;
  };
  expect(settledBy({ pushed })).toMatchObject({ pushes: [{ sha, place: "acme/app" }], pushing: [] });
  expect(settledBy({ pushed }).threads).toContain(threadIdOf("github", "acme/app", branchKeyOf("tsk_a")));
  expect(settledBy({}).pushes).toEqual([]);
  expect(settledBy({ pushed: { ...pushed, branch: "main" } }).pushes).toEqual([]);
  // A machine's word becomes part of an address.
  for (const place of ["", "acme", "../user", "acme/..", "acme/app/../../x", "acme/app?x", "acme/a pp"])
    expect(settledBy({ pushed: { ...pushed, place } }).pushes).toEqual([]);
  expect(settledBy({ output: { text: JSON.stringify({ pushed }), spilled: false } }).pushes).toEqual([]);
});
