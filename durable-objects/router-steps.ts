// One turn of the router's model: request, answer, check, commit. An answer counts only while its epoch does.
import type { InboxItem, PickedTurn } from "../src/core/router.ts";
import { decideStep, type ItemProgress, type StepOutcome } from "../src/core/router-decide.ts";
import { afterModelAnswer } from "../src/core/router-faults.ts";
import { policyStamp, profileStamp } from "../src/core/router-items.ts";
import { type Fact, usedIds } from "../src/core/router-memory.ts";
import { expandCalls, namesOf } from "../src/core/router-names.ts";
import { postsOf } from "../src/core/router-plan.ts";
import {
  factNamed,
  isLastStep,
  problemOf,
  type ReadAnswer,
  type StepMessages,
  stepMessages,
  taskNamed,
  unsaid,
} from "../src/core/router-turn.ts";
import { learnedRate } from "../src/core/token-rate.ts";
import { type Env, readConfig } from "../src/env.ts";
import { faultPoint } from "../src/fault-point.ts";
import type { ModelMessage, ModelReply } from "../src/protocol/model.ts";
import type { Policy } from "../src/protocol/policy.ts";
import type { Lane } from "../src/protocol/principal.ts";
import type { Profile } from "../src/protocol/profile.ts";
import { policiesInForce } from "../src/storage/policies.ts";
import { allInForce } from "../src/storage/profiles.ts";
import type { RouterLedger } from "../src/storage/router-ledger.ts";
import { RouterDrafts } from "./router-drafts.ts";
import type { RouterEffects } from "./router-effects.ts";
import { composeTurn, joinTurn, type Observed, type TurnMessage } from "./router-message.ts";
import type { RouterModel } from "./router-model.ts";
import { readAll } from "./router-reads.ts";

type Turn = {
  epoch: number;
  turn: number;
  lane: Lane;
  segment: number;
  items: Map<string, InboxItem>;
  policies: Policy[];
  profiles: Profile[];
  observed: Observed[];
  /** Ids of facts, tasks and machines that the message brought along. */
  inlined: string[];
} & Pick<TurnMessage, "told">;
/** What the steps of a turn did so far, and whose words they read. */
type Course = {
  progress: Map<string, ItemProgress>;
  shortened: Set<string>;
  heard: string[];
  used: Set<string>;
  reads: number;
  tainted: boolean;
};
/** `calls`: those of the reply, with ids in them. */
type Answered = { step: number; reply: ModelReply; calls: ModelReply["calls"]; reads: Map<number, ReadAnswer> };
type Decided = { outcome: StepOutcome; said: StepMessages; undecided: number; last: boolean };
type Step = Turn & {
  step: number;
  outcome: StepOutcome;
  reply: ModelReply;
  kept: ModelMessage[];
  /** What we took the request for. */
  tokens: number;
  startedMs: number;
  last: boolean;
  open: string[];
  used: ReadonlySet<string>;
  reads: number;
};

export class RouterSteps {
  readonly #storage: DurableObjectStorage;
  readonly #env: Env;
  readonly #ledger: RouterLedger;
  readonly #model: RouterModel;
  readonly #effects: Pick<RouterEffects, "kick" | "held">;

  constructor(
    storage: DurableObjectStorage,
    env: Env,
    ledger: RouterLedger,
    model: RouterModel,
    effects: Pick<RouterEffects, "kick" | "held">,
  ) {
    this.#storage = storage;
    this.#env = env;
    this.#ledger = ledger;
    this.#model = model;
    this.#effects = effects;
  }

  #here = () => {
    const { agentName, timeZone: zone } = readConfig(this.#env);
    return { agentName, zone, nowMs: Date.now() };
  };

  #mine = (epoch: number): boolean => this.#ledger.store.meta().epoch === epoch;

  /** One turn: steps until everything is settled, or nothing more was read. */
  async turn(epoch: number, picked: PickedTurn, observed: Observed[]): Promise<void> {
    const nowMs = Date.now();
    const [policies, profiles] = await Promise.all([policiesInForce(this.#env.DB, nowMs), allInForce(this.#env.DB, nowMs)]);
    const { lane } = picked;
    const items = new Map(picked.items.map((item) => [item.id, item]));
    const { talk, ...composed } = composeTurn(this.#ledger, picked, observed, { policies, profiles }, this.#here());
    const turn: Turn = { epoch, lane, ...composed, items, policies, profiles, observed };
    const course: Course = { progress: new Map(), shortened: new Set(), heard: [], used: new Set(), reads: 0, tainted: false };
    const drafts = new RouterDrafts(this.#env.THREAD);
    for (let step = 1; ; step++) {
      const startedMs = Date.now();
      const names = namesOf(turn.turn, items.keys());
      const { progress } = course;
      const answer = await this.#model.ask(turn, step, talk.messages, drafts.begin({ ...turn, step, progress, names }));
      if (answer === null || "error" in answer) {
        drafts.close("interrupted");
        if (answer !== null) await this.#model.failed(turn, step, answer.error);
        return;
      }
      const { reply } = answer;
      const calls = expandCalls(reply.calls, names);
      const reads = await readAll(this.#env, this.#ledger, turn, calls);
      const open = [...items.keys()].filter((id) => !progress.has(id));
      const { outcome, said, undecided, last } = this.#decide(turn, course, { step, reply, calls, reads });
      const kept = [...talk.takeKept(), ...said.kept];
      const { used, reads: readCount } = course;
      const taken = { ...turn, step, outcome, reply, kept, tokens: talk.tokens, startedMs, last, open, used, reads: readCount };
      const committed = this.#commit(taken);
      drafts.replaced(committed ? postsOf(outcome.decisions) : []);
      if (!committed || last) drafts.close("dropped");
      if (!committed) return;
      await faultPoint(readConfig(this.#env).faultUrl, "router.committed");
      if (last) return;
      talk.add(said.sent, []);
      if (!course.tainted) talk.add(joinTurn(this.#ledger, this.#effects.held(), { ...turn, ...this.#here(), step, undecided }));
    }
  }

  #factNamed(input: unknown): Fact[] {
    const id = factNamed(input);
    const fact = id === "" ? null : this.#ledger.memory.fact(id);
    return fact === null ? [] : [fact];
  }

  /** Decides a step, and notes in the turn's course what it read and did. */
  #decide(turn: Turn, course: Course, { step, reply, calls, reads }: Answered): Decided {
    const { store } = this.#ledger;
    const { tainted: before, shortened, progress } = course;
    const read = [...reads.values()];
    course.tainted ||= turn.lane === "team" && read.some(({ tainting }) => tainting);
    course.reads += reads.size;
    for (const id of usedIds(turn.inlined, calls)) course.used.add(id);

    const view = { ...turn, ...this.#here(), ...this.#known(turn, calls), step, capped: course.tainted };
    const outcome = decideStep({ ...view, progress, shortened, heard: [...course.heard] }, calls);
    const known = new Set([...turn.items.keys(), ...namesOf(turn.turn, turn.items.keys()).keys()]);
    const keptId = `kept_${turn.turn}_${step}`;
    const said = stepMessages(reply, outcome, reads, { team: turn.lane === "team", tainted: before, known, keptId });

    course.progress = outcome.progress;
    course.heard.push(...read.flatMap(({ heard }) => heard));
    for (const id of outcome.tooLong) shortened.add(id);
    const settled = new Set(outcome.decisions.flatMap((decision) => decision.settles));
    const undecided = [...turn.items.keys()].filter((id) => store.inbox.state(id) === "queued" && !settled.has(id)).length;
    const last = isLastStep(step, reads.size, undecided, outcome.tooLong.length + Number(outcome.again));
    return { outcome, said, undecided, last };
  }

  /** What the router's rows say of that which the calls may name. */
  #known(turn: Turn, calls: ModelReply["calls"]) {
    const { store, schedules, speculations } = this.#ledger;
    const named = calls.flatMap((call) => store.task(taskNamed(call.input)) ?? []);
    const reported = [...turn.items.values()].flatMap((item) => (item.kind === "report" ? (store.task(item.report.taskId) ?? []) : []));
    return {
      tasks: new Map([...store.tasks(), ...named, ...reported].map((task) => [task.id, task])),
      facts: new Map(calls.flatMap((call) => this.#factNamed(call.input)).map((fact) => [fact.id, fact])),
      machines: store.machines(),
      schedules: schedules.list(),
      proposals: store.proposals(),
      speculation: speculations.view(Date.now()),
    };
  }

  /** All of a step, or nothing: void when another loop took over, or when a thread of the turn got its worker meanwhile. */
  #commit(step: Step): boolean {
    const { store, log } = this.#ledger;
    const nowMs = Date.now();
    const committed = this.#storage.transactionSync(() => {
      const about = this.#model.about(step, step.step);
      const mine = this.#mine(step.epoch);
      if (!mine || step.open.some((id) => store.inbox.state(id) !== "queued")) {
        const error = mine ? "void: a worker has these rows" : "void: another loop took over";
        log.append({ kind: "router.model", ...about, phase: "failed", ms: nowMs - step.startedMs, error }, nowMs);
        return false;
      }
      log.append({ kind: "router.model", ...about, phase: "settle", ms: nowMs - step.startedMs, usage: step.reply.usage }, nowMs);
      // Words instead of calls may be what one of them makes of all of them.
      const silent = step.last && step.reply.calls.length === 0 && store.inbox.queuedOf([...step.items.keys()]).size === step.items.size;
      store.appendTranscript(step.lane, step.segment, step.turn, silent ? step.kept.map(unsaid) : step.kept);
      for (const decision of step.outcome.decisions) this.#ledger.commit(decision, nowMs);
      for (const { tool, settles, reason } of step.outcome.refused)
        log.append({ kind: "router.refused", turn: step.turn, tool, settles, reason }, nowMs);
      if (!silent) for (const each of step.observed) store.seen(each);
      const meta = afterModelAnswer(store.meta(), step.lane, silent ? step.items.size : null);
      const context = step.last ? this.#ledger.measure(step, meta.context, nowMs) : meta.context;
      const policies = { team: "", public: "", ...meta.policies, [step.lane]: silent ? "" : policyStamp(step.policies) };
      const shown = { policies, ...(step.lane === "team" ? { profiles: silent ? "" : profileStamp(step.profiles) } : {}) };
      const tokenRate = learnedRate(meta.tokenRate, step.tokens, step.reply.usage);
      const underWay = step.last ? null : meta.underWay;
      store.setMeta({
        ...meta,
        underWay,
        tokenRate,
        context,
        turn: step.turn,
        // A past that was left behind meanwhile stays behind.
        segments: { ...meta.segments, [step.lane]: Math.max(meta.segments[step.lane], step.segment) },
        ...shown,
      });
      for (const item of step.last ? store.inbox.queuedOf([...step.items.keys()]).values() : []) {
        const problem = problemOf(item, step.outcome, step.reply.calls.length > 0);
        if (silent && step.items.size > 1) store.inbox.setAttempt(item.id, item.attempts, problem);
        else this.#ledger.undecided(item, problem, nowMs);
      }
      store.inbox.keepOpen();
      return true;
    });
    this.#effects.kick();
    return committed;
  }
}
