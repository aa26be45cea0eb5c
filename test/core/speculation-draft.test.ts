// The draft of a pull request that nobody asked for: kept with its task and the one commit that it is about, offered with its end, made
// by code once a person released it, or taken over by whoever asks for it.
import { describe, expect, test } from "vitest";
import { audienceOf } from "../../src/core/audience.ts";
import { branchKeyOf } from "../../src/core/branch.ts";
import { threadIdOf } from "../../src/core/ids.ts";
import { readOf, releasedBefore } from "../../src/core/offer.ts";
import { adoptionOf } from "../../src/core/router-adoption.ts";
import { type DispatchView, planDispatch } from "../../src/core/router-dispatch.ts";
import { offeredDecision, openedDecision } from "../../src/core/router-speculation.ts";
import { isPeoples, onOffer } from "../../src/core/speculation.ts";
import { revealed } from "../../src/core/structured.ts";
import { whyNotCall } from "../../src/core/worker-calls.ts";
import { adoptTask, reopenTask } from "../../src/core/worker-follow.ts";
import { offerMoved } from "../../src/core/worker-offers.ts";
import { decideReply } from "../../src/core/worker-reply.ts";
import { commandSettled } from "../../src/core/worker-session.ts";
import type { Change, TaskState, WorkerCommand, WorkerEffect } from "../../src/core/worker-state.ts";
import type { Command, SettledCommand } from "../../src/protocol/command.ts";
import type { Offer, OfferView } from "../../src/protocol/offer.ts";
import type { Speculation } from "../../src/protocol/speculation.ts";
import type { Report } from "../../src/protocol/task.ts";
import type { WorkerCall } from "../../src/protocol/worker-tools.ts";
import { commandFor } from "../../src/tools/on-endpoint.ts";
import { queuedTrigger, member as someone, taskOf } from "../support/router-fixtures.ts";
import { calling, command, member, outputs, reply, replyFacts, result, rowOf, start, threadId } from "../support/worker-fixtures.ts";

const ran = [command(1, "run_command", { open: false, ended: "git commit -qm mend · exit 0" })];
const pull = { what: "pull_request", title: "Mend the gate", summary: "It squeaked.", changes: ["Oiled it"], base: "develop" };
const sha = "a".repeat(40);
const other = "b".repeat(40);
const commitOf = (of = sha, place = "acme/app") => ({ sha: of, branch: "switchyard/tsk_a", place });
const unasked = (more: Partial<TaskState> = {}): TaskState => calling({ start: { ...start, speculative: true }, threads: [], ...more });
const step = (task: TaskState, calls: [string, object][], commands: readonly WorkerCommand[] = ran): Change =>
  decideReply(task, reply(...calls), replyFacts({ allCommands: () => commands, commandFor }));
const offersOf = ({ effects }: Change): Offer[] => effects.flatMap((effect) => (effect.effect === "offer" ? [effect.input.offer] : []));
const submitted = ({ effects }: Change): Command[] => effects.flatMap((effect) => (effect.effect === "submit" ? [effect.command] : []));
/** The next step of a task. */
const again = (task: TaskState): TaskState => ({
  ...task,
  steps: task.steps + 1,
  open: { kind: "calling", step: task.steps + 1, attempts: 1, retryAtMs: null },
});

/** The task's newest command has ended. */
function settle({ task, commands }: Change, more: Partial<SettledCommand>): Change {
  const newest = commands.at(-1);
  if (newest === undefined) throw new Error("no command was started");
  const row = result(newest);
  if (row.item.kind !== "result") throw new Error("no result");
  return commandSettled(task, newest, { ...row.item.result, ...more }, row);
}

const done: [string, object] = ["report", { kind: "done", text: "The gate is mended.", confidence: 0.9, straightforward: true }];
const keeping = step(unasked(), [["push", { cwd: "app" }]]);
const kept = settle(keeping, { kept: commitOf() });
const end = step(again(kept.task), [["propose", pull], done]);
const report = end.reports[0] as Report;
const row: Speculation = {
  taskId: "tsk_a",
  title: "Mend it",
  policy: { id: "early", version: 1, maxWastedCalls: 9 },
  decisionId: "dec_a",
  threadId,
  triggerId: start.quote.triggerId,
  seq: 1,
  sha: null,
  source: "github",
  place: "acme/app",
  reservedCalls: 5,
  spent: { calls: 2, inputTokens: 0, outputTokens: 0 },
  dollars: null,
  outcome: "offered",
  why: "",
  offerId: "out_x",
  offerText: report.draft?.text ?? null,
  draft: true,
  startedMs: 0,
  settledMs: 1,
  closedMs: null,
};
const offerOf = (decision: ReturnType<typeof offeredDecision>): Offer => {
  const [effect] = decision.effects;
  if (effect?.kind !== "offer") throw new Error("nothing was offered");
  return effect.input.offer;
};
const viewOf = (offer: Offer): OfferView => ({
  offer,
  state: "released",
  atMs: 0,
  untilMs: 9,
  decided: { by: "member", via: "person", reason: "" },
});
const released = viewOf(offerOf(offeredDecision(row, report, 0, 1)));
const facts = { receive: rowOf, commandFor, nowMs: 5 };

describe("a pull request of a task that nobody asked for", () => {
  test("[SP8] is kept with the task and the commit that its machine named, with what ran; nothing leaves, neither an offer nor a branch", () => {
    expect(submitted(keeping).map(({ spec }) => spec)).toEqual([
      { kind: "keep", workspace: "app", branch: "switchyard/tsk_a", cwd: "app" },
    ]);
    // It is no push: the task has no ledger of one, and follows no branch.
    expect(kept.task).toMatchObject({ pushes: [], pushing: [], threads: [] });
    expect(end.effects.filter(({ effect }) => effect !== "report")).toEqual([]);
    expect(outputs(end)[0]).toContain("drafted");
    const branch = threadIdOf("github", "acme/app", branchKeyOf("tsk_a"));
    expect(report.draft).toMatchObject({
      threadId: branch,
      sha,
      deed: { do: "pull_request", head: "switchyard/tsk_a", base: "develop", title: "Mend the gate" },
    });
    expect(report.draft?.text).toContain("git commit -qm mend · exit 0");
    const call = (tool: string, input: object) => ({ callId: "c", tool, input }) as WorkerCall;
    expect(whyNotCall(unasked(), call("propose", pull), false)).toBeNull();
    expect(whyNotCall(unasked(), call("propose", { what: "comment", text: "x" }), false)).toContain("nothing of it leaves");
    const child = unasked({ start: { ...start, speculative: true, parent: { taskId: "tsk_p", depth: 1 } } });
    expect(whyNotCall(child, call("propose", pull), false)).toContain("nothing of it leaves");
    expect(whyNotCall(child, call("push", {}), false)).toContain("no branch either");
  });

  test("[SP8] is refused without a commit of that repository, and goes with no end but a good one", () => {
    const refused = (task: TaskState) => outputs(step(task, [["propose", pull]]))[0];
    expect(refused(unasked({ start: { ...start, speculative: true, source: "generic" } }))).toContain("no repository");
    expect(refused(unasked())).toContain("made from a kept commit");
    expect(refused(again(settle(keeping, {}).task))).toContain("made from a kept commit");
    expect(refused(again(settle(keeping, { kept: { ...commitOf(), branch: "main" } }).task))).toContain("made from a kept commit");
    expect(refused(again(settle(keeping, { kept: commitOf(sha, "acme/other") }).task))).toContain("is of acme/other");
    const failed = step(again({ ...kept.task, retried: true }), [
      ["propose", pull],
      ["report", { kind: "failed", text: "no" }],
    ]);
    expect(failed.reports.map(({ kind, draft }) => [kind, draft])).toEqual([["failed", undefined]]);
  });

  test("[O12] [SP8] shows all that its commit changes, and is refused when that is more than can be read", () => {
    expect(report.draft?.changes).toBe("ok");
    expect(released.offer.changes).toBe("ok");
    expect(readOf(released.offer)).toBe(`${report.draft?.text}\n\nok`);
    const spilled = { head: "a", tail: "b", artifactId: "art_x", totalBytes: 99_999, spilled: true as const };
    const refused = step(again(settle(keeping, { kept: commitOf(), output: spilled }).task), [["propose", pull]]);
    expect(outputs(refused)[0]).toContain("more than a person reads");
    expect(refused.task.draft).toBeUndefined();
    // Of the text that is sent what cannot be seen is left out; of what is only shown it must not be.
    expect(revealed("a\u202eb\u200b\ufe0f\ufe0f\r\n\tc")).toBe("a‹U+202E›b‹U+200B›\ufe0f‹U+FE0F›‹U+000D›\n\tc");
  });

  test("[SP8] is what people see of it, its commit too, and only a person releases it; its release is no sending", () => {
    expect(released.offer).toMatchObject({
      draft: true,
      personOnly: true,
      title: expect.stringContaining("Draft of a pull request: Mend the gate (into develop, commit aaaaaaaaaa)"),
      outbound: { threadId, text: report.draft?.text, deed: report.draft?.deed },
    });
    const accepted = onOffer(row, "released", null, 5);
    expect(accepted).toMatchObject({ outcome: "accepted", why: "a person released it" });
    expect(accepted && isPeoples(accepted)).toBe(true);
    expect(isPeoples({ ...row, outcome: "rejected" })).toBe(false);
    expect(isPeoples({ ...row, outcome: "accepted", draft: undefined } as never)).toBe(false);
  });

  test("[SP8] released it is an ordinary task again, in the thread that it came from, whoever looks how often", () => {
    const known = { ...taskOf("mend"), id: "tsk_a", speculative: true, status: "done" as const, endedMs: 3, threads: [] };
    const decision = openedDecision({ ...row, outcome: "accepted" }, released, known, "Switchyard", 1, 5);
    expect(decision.effects.map(({ kind }) => kind)).toEqual(["reopen", "subscribe"]);
    expect(decision.newTask).toMatchObject({ status: "running", endedMs: null, threads: [threadId] });
    expect(decision.newTask?.speculative).toBeUndefined();
    expect(openedDecision({ ...row, outcome: "accepted" }, released, known, "Switchyard", 2, 9).id).toBe(decision.id);
  });

  test("[SP8] the task tells the router at once what people made of it, and waits for nothing of it any more", () => {
    const held = offerMoved(end.task, { ...released, state: "held" }, facts);
    expect(held?.reports).toEqual([]);
    const change = offerMoved(held?.task ?? end.task, released, facts);
    expect(change?.reports).toMatchObject([{ kind: "proposal", offer: released.offer.outbound.id }]);
    expect(change?.task.offers).toMatchObject([{ stage: "released" }]);
    // The router opens it: until then nothing of it is pushed.
    expect(change && submitted(change)).toEqual([]);
    expect(change && offerMoved(change.task, released, facts)).toBeNull();
  });
});

describe("its release", () => {
  const input = { id: "dec_r", by: member, text: "Released.", tainted: false, released: { offerId: "out_x", by: "member" } };
  const opened = reopenTask(end.task, input, facts) as Change;
  const pushed = settle(opened, { pushed: commitOf() });

  test("[SP8] pushes the commit that was released, wherever the folder stands by now; the task may do what any task may", () => {
    expect(submitted(opened).map(({ spec }) => spec)).toEqual([
      { kind: "push_kept", workspace: "app", branch: "switchyard/tsk_a", cwd: "app", sha, place: "acme/app" },
    ]);
    expect(opened.task.start.speculative).toBeUndefined();
    expect(opened.task.card.speculative).toBeUndefined();
    expect(opened.task).toMatchObject({ threads: [threadId], again: false, mode: { mode: "working" } });
    // The same opening once more changes nothing.
    expect(reopenTask(opened.task, input, facts)).toBeNull();
  });

  test("[SP8] proposes that pull request, as it was released, once its commit is pushed; nobody is asked again", () => {
    expect(offersOf(opened)).toEqual([]);
    const [offer] = offersOf(pushed);
    expect(offer).toMatchObject({
      releasedAs: { offerId: "out_x", by: "member" },
      outbound: { text: report.draft?.text, deed: report.draft?.deed, threadId: report.draft?.threadId },
    });
    expect(offer && releasedBefore(offer)).toMatchObject({ by: { name: "member" }, reason: "released as the draft out_x" });
    expect(pushed.task).toMatchObject({ pushes: [{ sha }], offers: [{ stage: "proposed" }] });
    // From here on its pushes and proposals are those of any task.
    const more = step(again(pushed.task), [["push", {}]]);
    expect(submitted(more)[0]?.spec.kind).toBe("push");
    expect(offersOf(step(again(pushed.task), [["propose", pull]]))[0]).not.toMatchObject({ releasedAs: {} });
  });

  test("[SP8] counts although public text came while it was pushed: what was released is older than that", () => {
    const [offer] = offersOf(settle({ ...opened, task: { ...opened.task, tainted: true } }, { pushed: commitOf() }));
    expect(offer).toMatchObject({ from: { tainted: false }, releasedAs: {} });
  });

  test.each<[string, Partial<SettledCommand>]>([
    ["the branch has changed", { exitCode: 1 }],
    ["the commit is gone", { outcome: "refused", reason: "is not in this repository any more" }],
    ["nobody saw its end", { outcome: "outcome_unknown" }],
    ["another commit was pushed", { pushed: commitOf(other) }],
    ["it was pushed elsewhere", { pushed: commitOf(sha, "acme/other") }],
  ])("[SP8] opens nothing where %s: the task hears why, and what it drafts then waits for a person again", (_what, ended) => {
    const lost = settle(opened, ended);
    expect(offersOf(lost)).toEqual([]);
    expect(lost.task.notices.at(-1)).toContain("could not be pushed");
    const keptAgain = settle(step(again(lost.task), [["push", {}]]), { kept: commitOf(other) });
    const drafted = step(again(keptAgain.task), [["propose", pull]]);
    const [offer] = offersOf(drafted);
    expect(offer).toMatchObject({
      draft: true,
      personOnly: true,
      changes: "ok",
      outbound: { threadId },
      title: expect.stringContaining("bbbbbbbbbb"),
    });
    expect(offer && releasedBefore(offer)).toBeNull();
    if (offer === undefined) throw new Error("nothing was offered");
    // Declined, nothing happens; released, the new commit is pushed and its pull request proposed.
    const declined = offerMoved(drafted.task, { ...viewOf(offer), state: "declined" }, facts);
    expect(declined && submitted(declined)).toEqual([]);
    const go = offerMoved(drafted.task, viewOf(offer), facts) as Change;
    expect(submitted(go)[0]?.spec).toMatchObject({ kind: "push_kept", sha: other });
    const proposed = offersOf(settle(go, { pushed: commitOf(other) }));
    expect(proposed).toMatchObject([{ releasedAs: { offerId: offer.outbound.id, by: "member" } }]);
    expect(proposed[0]?.outbound.id).not.toBe(offer.outbound.id);
  });

  test("[SP8] is of one draft: a newer one takes its place, and the older one's release moves nothing", () => {
    const lost = settle(opened, { exitCode: 1 });
    const keptAgain = settle(step(again(lost.task), [["push", {}]]), { kept: commitOf(other) });
    const first = step(again(keptAgain.task), [["propose", pull]]);
    const second = step(again(first.task), [["propose", { ...pull, title: "Mend it well" }]]);
    const [older] = offersOf(first);
    if (older === undefined) throw new Error("nothing was offered");
    const withdrawn = (effect: WorkerEffect) =>
      effect.effect === "withdraw" && effect.outboundId === older.outbound.id && effect.by.name === "its task";
    expect(second.effects.some(withdrawn)).toBe(true);
    const late = offerMoved(second.task, viewOf(older), facts);
    expect(late && submitted(late)).toEqual([]);
    expect(outputs(step(again(opened.task), [["propose", pull]]))[0]).toContain("is being pushed");
  });

  test("[SP8] of a task that was stopped meanwhile opens nothing", () => {
    const ended = { ...opened.task, mode: { mode: "ended" as const, status: "cancelled" as const, endedMs: 6 } };
    expect(offersOf(settle({ ...opened, task: ended }, { pushed: commitOf() }))).toEqual([]);
  });

  test("[SP8] opened again without one, its commits are only kept still", () => {
    const { released: _, ...rest } = input;
    const change = reopenTask(end.task, rest, facts) as Change;
    expect(submitted(change)).toEqual([]);
    expect(submitted(step(again(change.task), [["push", {}]]))[0]?.spec.kind).toBe("keep");
  });
});

describe("whoever asks for it meanwhile", () => {
  const asked = queuedTrigger({ name: "asks", by: someone, thread: "77" });
  const known = { ...taskOf("mend"), id: "tsk_a", speculative: true, status: "done" as const, endedMs: 3 };
  const audience = audienceOf(asked.trigger);
  const view = (task = { ...known, audience }, of: Speculation = { ...row, threadId: asked.threadId }) => ({
    nowMs: 9,
    agentName: "Switchyard",
    machines: [],
    policies: [],
    tasks: new Map([[task.id, task]]),
    speculation: { rows: [of], paused: new Map() },
  });
  const plan = (of: DispatchView, wish: object = {}, trigger = asked) =>
    planDispatch(of, { title: "Other words", goal: "Mend it.", ...wish }, [trigger], {
      ...{ id: "dec_x", turn: 1, lane: "team", tool: "dispatch", by: "model", authority: "member" },
      ...{ settles: [asked.id], reason: "", effects: [] },
    });

  test("[SP5] in its thread gets the draft's task, which goes on; its offer is taken back, and nothing is started", () => {
    const planned = plan(view());
    expect(planned).toMatchObject({ result: { adopted: "tsk_a" }, decision: { adopted: "tsk_a", chain: row.decisionId } });
    if ("refused" in planned) throw new Error(planned.refused);
    const { effects, newTask } = planned.decision;
    expect(effects.map(({ kind }) => kind)).toEqual(["withdraw", "adopt", "subscribe", "tell"]);
    expect(effects[0]).toMatchObject({ threadId: asked.threadId, input: { outboundId: "out_x", verdict: "decline" } });
    expect(newTask).toMatchObject({ id: "tsk_a", status: "running", endedMs: null, threads: [asked.threadId] });
  });

  test("[SP5] elsewhere gets it by its name, or with the words that it was started for", () => {
    const there = { ...row, threadId: "thr_elsewhere" };
    for (const wish of [{ adopt: "tsk_a" }, { title: "mend it!" }])
      expect(plan(view(undefined, there), wish)).toMatchObject({ result: { adopted: "tsk_a" } });
    expect(plan(view(undefined, there))).not.toMatchObject({ result: { adopted: "tsk_a" } });
    // The same words in another repository are other work.
    expect(plan(view(undefined, { ...there, place: "acme/other" }), { title: "Mend it" })).not.toMatchObject({
      result: { adopted: "tsk_a" },
    });
    const text = { ...there, offerText: "It is the cookie." };
    delete text.draft;
    expect(plan(view(undefined, text), { title: "Mend it" })).toMatchObject({
      decision: { effects: [{ kind: "withdraw" }, { kind: "post" }] },
    });
  });

  test("[SP5] from a conversation that may not hear it gets a task of their own, and the draft stays where it is", () => {
    const there = { ...row, threadId: "thr_elsewhere" };
    const hidden = { ...known, audience: "web prs_other" };
    expect(adoptionOf(view(hidden, there), { title: "Mend it" }, [asked], "member")).toEqual({ what: "instead", rows: [] });
    expect(adoptionOf(view(hidden, there), { adopt: "tsk_a", title: "" }, [asked], "member")).toMatchObject({ what: "refused" });
  });

  test("[SP5] the task goes on as theirs with its own allowance, and its pushes and proposals are those of any task", () => {
    const wish = { ...start, threadId: "thr_asker", decisionId: "dec_x", quote: { ...start.quote, text: "please mend it" } };
    const change = adoptTask(end.task, wish, []) as Change;
    expect(change.task).toMatchObject({ mode: { mode: "asking" }, threads: ["thr_asker"], allowance: end.task.steps + 15 });
    expect(change.task.draft).toBeUndefined();
    expect(change.effects.filter(({ effect }) => effect === "unsubscribe")).toEqual([]);
    expect(change.task.notices.at(-1)).toContain("aaaaaaaaaa");
    expect(submitted(step(again(change.task), [["push", {}]]))[0]?.spec.kind).toBe("push");
    expect(adoptTask(change.task, wish, [])).toBeNull();
    // Released in the same moment it is theirs all the same: nobody pushes behind its back.
    const late = offerMoved(change.task, released, facts);
    expect(late && submitted(late)).toEqual([]);
  });
});
