// The draft of a pull request that nobody asked for: kept with its task, offered with its end, made by it once a person released it.
import { describe, expect, test } from "vitest";
import { audienceOf } from "../../src/core/audience.ts";
import { branchKeyOf } from "../../src/core/branch.ts";
import { threadIdOf } from "../../src/core/ids.ts";
import { releasedBefore } from "../../src/core/offer.ts";
import { adoptionOf } from "../../src/core/router-adoption.ts";
import { offeredDecision, openedDecision } from "../../src/core/router-speculation.ts";
import { isPeoples, onOffer } from "../../src/core/speculation.ts";
import { whyNotCall } from "../../src/core/worker-calls.ts";
import { reopenTask } from "../../src/core/worker-follow.ts";
import { offerMoved } from "../../src/core/worker-offers.ts";
import { decideReply } from "../../src/core/worker-reply.ts";
import type { Change, TaskState, WorkerCommand } from "../../src/core/worker-state.ts";
import type { Offer, OfferView } from "../../src/protocol/offer.ts";
import type { Speculation } from "../../src/protocol/speculation.ts";
import type { Report } from "../../src/protocol/task.ts";
import type { WorkerCall } from "../../src/protocol/worker-tools.ts";
import { queuedTrigger, member as someone, taskOf } from "../support/router-fixtures.ts";
import { calling, command, member, outputs, reply, replyFacts, rowOf, start, threadId } from "../support/worker-fixtures.ts";

const ran = [command(1, "run_command", { open: false, ended: "git commit -qm mend · exit 0" })];
const pull = { what: "pull_request", title: "Mend the gate", summary: "It squeaked.", changes: ["Oiled it"], base: "develop" };
const unasked = (more: Partial<TaskState> = {}): TaskState => calling({ start: { ...start, speculative: true }, threads: [], ...more });
const step = (task: TaskState, calls: [string, object][], commands: readonly WorkerCommand[] = ran): Change =>
  decideReply(task, reply(...calls), replyFacts({ allCommands: () => commands }));
const offersOf = ({ effects }: Change): Offer[] => effects.flatMap((effect) => (effect.effect === "offer" ? [effect.input.offer] : []));

const done: [string, object] = ["report", { kind: "done", text: "The gate is mended.", confidence: 0.9, straightforward: true }];
const end = step(unasked(), [["propose", pull], done]);
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
const released: OfferView = {
  offer: offerOf(offeredDecision(row, report, 0, 1)),
  state: "released",
  atMs: 0,
  untilMs: 9,
  decided: { by: "member", via: "person", reason: "" },
};

describe("a pull request of a task that nobody asked for", () => {
  test("[SP8] is kept with the task, with what ran; nothing leaves, neither an offer nor a branch", () => {
    expect(end.effects.filter(({ effect }) => effect !== "report")).toEqual([]);
    expect(outputs(end)[0]).toContain("drafted");
    const branch = threadIdOf("github", "acme/app", branchKeyOf("tsk_a"));
    expect(report.draft).toMatchObject({
      threadId: branch,
      deed: { do: "pull_request", head: "switchyard/tsk_a", base: "develop", title: "Mend the gate" },
    });
    expect(report.draft?.text).toContain("git commit -qm mend · exit 0");
    const call = (tool: string, input: object) => ({ callId: "c", tool, input }) as WorkerCall;
    expect(whyNotCall(unasked(), call("propose", pull), false)).toBeNull();
    expect(whyNotCall(unasked(), call("propose", { what: "comment", text: "x" }), false)).toContain("nothing of it leaves");
    expect(whyNotCall(unasked(), call("push", {}), false)).toContain("no branch either");
    const child = unasked({ start: { ...start, speculative: true, parent: { taskId: "tsk_p", depth: 1 } } });
    expect(whyNotCall(child, call("propose", pull), false)).toContain("nothing of it leaves");
  });

  test("[SP8] is refused where the work began in no repository, and goes with no end but a good one", () => {
    const elsewhere = unasked({ start: { ...start, speculative: true, source: "generic" } });
    expect(outputs(step(elsewhere, [["propose", pull]]))[0]).toContain("no repository");
    const failed = step(unasked({ retried: true }), [
      ["propose", pull],
      ["report", { kind: "failed", text: "no" }],
    ]);
    expect(failed.reports.map(({ kind, draft }) => [kind, draft])).toEqual([["failed", undefined]]);
  });

  test("[SP8] is what people see of it, and only a person releases it; its release is no sending", () => {
    expect(released.offer).toMatchObject({
      draft: true,
      personOnly: true,
      title: expect.stringContaining("Draft of a pull request: Mend the gate (into develop)"),
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
    const held = offerMoved(end.task, { ...released, state: "held" }, rowOf, 5);
    expect(held?.reports).toEqual([]);
    const change = offerMoved(held?.task ?? end.task, released, rowOf, 6);
    expect(change?.reports).toMatchObject([{ kind: "proposal", offer: released.offer.outbound.id }]);
    expect(change?.task.offers).toMatchObject([{ stage: "released" }]);
    expect(change && offerMoved(change.task, released, rowOf, 7)).toBeNull();
  });

  test("[SP8] whoever asks for it meanwhile is told that it waits for a release", () => {
    const asked = queuedTrigger({ name: "asks", by: someone, thread: "77" });
    const tasks = new Map([["tsk_a", { ...taskOf("mend"), id: "tsk_a", speculative: true, audience: audienceOf(asked.trigger) }]]);
    const adoption = adoptionOf({ tasks, speculation: { rows: [row], paused: new Map() } }, "tsk_a", [asked], "member");
    expect(adoption).toMatchObject({ what: "refused", refused: expect.stringContaining("draft of a pull request") });
  });
});

describe("the proposal after the release", () => {
  const by = { id: "dec_r", by: member, text: "Released.", tainted: false };
  const pushed = { sha: "a".repeat(40), branch: "switchyard/tsk_a", place: "acme/app", base: "main", atMs: 5 };
  const opened = (more: object = { released: { offerId: "out_x", by: "member" } }): TaskState => {
    const change = reopenTask(end.task, { ...by, ...more });
    if (change === null) throw new Error("it was not opened");
    const open = { kind: "calling" as const, step: 3, attempts: 1, retryAtMs: null };
    return { ...change.task, pushes: [pushed], open };
  };
  const push = command(2, "push", { open: false, ended: "pushed" });
  const again = { ...pull, base: undefined };

  test("[SP8] the same words count as released, once, and the task may do what any task may", () => {
    const task = opened();
    expect(task.start.speculative).toBeUndefined();
    expect(task.card.speculative).toBeUndefined();
    expect(task.threads).toEqual([threadId]);
    const change = step(task, [["propose", again]], [...ran, push]);
    const [offer] = offersOf(change);
    expect(offer).toMatchObject({ releasedAs: { offerId: "out_x", by: "member" }, outbound: { text: report.draft?.text } });
    expect(offer && releasedBefore(offer)).toMatchObject({ by: { name: "member" }, reason: "released as the draft out_x" });
    const second = step({ ...change.task, open: task.open, mode: { mode: "working" } }, [["propose", pull]], [...ran, push]);
    expect(offersOf(second)[0]?.releasedAs).toBeUndefined();
  });

  test.each([
    ["another title", { ...pull, title: "Mend the door" }, ran],
    ["another branch to go into", { ...pull, base: "main" }, ran],
    ["other changes", { ...pull, changes: ["Oiled it", "Painted it"] }, ran],
    ["a command that ran since", pull, [...ran, command(3, "run_command", { open: false, ended: "git commit -qm more · exit 0" })]],
    ["a file that was written since", pull, [...ran, command(3, "write_file", { open: false, ended: "wrote a" })]],
  ])("[SP8] with %s it waits as always", (_what, input, commands) => {
    expect(offersOf(step(opened(), [["propose", input]], commands))[0]?.releasedAs).toBeUndefined();
  });

  test("[SP8] opened again without a release, or of a task that read public text since, it waits as always", () => {
    expect(offersOf(step(opened({}), [["propose", pull]]))[0]?.releasedAs).toBeUndefined();
    const [offer] = offersOf(step({ ...opened(), tainted: true }, [["propose", pull]]));
    expect(offer && releasedBefore(offer)).toBeNull();
  });
});
