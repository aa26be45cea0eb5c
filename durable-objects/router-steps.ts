// One turn of the router's model: request, answer, check, commit. An answer counts only while its epoch does.
import type { InboxItem } from "../src/core/router.ts";
import { decideStep, type ItemProgress, type StepOutcome, type TurnView } from "../src/core/router-decide.ts";
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
import { composeTurn, joinTurn, type TurnMessage } from "./router-message.ts";
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
type StepInput = Required<Pick<TurnView, "progress" | "shortened" | "heard">> & {
  reply: ModelReply;
  /** Those of the reply, with ids in them. */
  calls: ModelReply["calls"];
  reads: Map<number, ReadAnswer>;
  tainted: boolean;
  before: boolean;
};
export type PickedTurn = { lane: Lane; items: InboxItem[] };
/** A thread that moved by itself up to `headSeq`, and was looked at up to `seenSeq`. */
export type Observed = { threadId: string; headSeq: number; seenSeq: number; line: string };
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
    const { store } = this.#ledger;
    const { lane } = picked;
    const items = new Map(picked.items.map((item) => [item.id, item]));
    const { talk, ...composed } = composeTurn(this.#ledger, picked, observed, { policies, profiles }, this.#here());
    const turn: Turn = {
      epoch,
      lane,
      ...composed,
      items,
      policies,
      profiles,
      observed,
    };
    let tainted = false;
    let progress = new Map<string, ItemProgress>();
    const used = new Set<string>();
    let readCount = 0;
    const shortened = new Set<string>();
    const heard: string[] = [];
    const drafts = new RouterDrafts(this.#env.THREAD);
    for (let step = 1; ; step++) {
      const startedMs = Date.now();
      const names = namesOf(turn.turn, items.keys());
      const answer = await this.#model.ask(turn, step, talk.messages, drafts.begin({ ...turn, step, progress, names }));
      if (answer === null || "error" in answer) {
        drafts.close("interrupted");
        if (answer !== null) await this.#model.failed(turn, step, answer.error);
        return;
      }
      const { reply } = answer;
      const calls = expandCalls(reply.calls, names);
      const reads = await readAll(this.#env, this.#ledger, turn, calls);
      readCount += reads.size;
      for (const id of usedIds(turn.inlined, calls)) used.add(id);
      const before = tainted;
      const open = [...items.keys()].filter((id) => !progress.has(id));
      tainted ||= lane === "team" && [...reads.values()].some((read) => read.tainting);
      const { outcome, said } = this.#decide(turn, step, { reply, calls, reads, progress, shortened, heard: [...heard], tainted, before });
      progress = outcome.progress;
      heard.push(...[...reads.values()].flatMap((read) => read.heard));
      for (const id of outcome.tooLong) shortened.add(id);
      const settled = new Set(outcome.decisions.flatMap((decision) => decision.settles));
      const undecided = [...items.keys()].filter((id) => store.inbox.state(id) === "queued" && !settled.has(id)).length;
      const last = isLastStep(step, reads.size, undecided, outcome.tooLong.length + Number(outcome.again));
      const kept = [...talk.takeKept(), ...said.kept];
      const entry = { ...turn, step, outcome, reply, kept, tokens: talk.tokens, startedMs, last, open, used, reads: readCount };
      const committed = this.#commit(entry);
      drafts.replaced(committed ? postsOf(outcome.decisions) : []);
      if (!committed || last) drafts.close("dropped");
      if (!committed) return;
      await faultPoint(readConfig(this.#env).faultUrl, "router.committed");
      if (last) return;
      talk.add(said.sent, []);
      if (!tainted) talk.add(joinTurn(this.#ledger, this.#effects.held(), { ...turn, ...this.#here(), step, undecided }));
    }
  }

  #factNamed(input: unknown): Fact[] {
    const id = factNamed(input);
    const fact = id === "" ? null : this.#ledger.memory.fact(id);
    return fact === null ? [] : [fact];
  }

  #decide(turn: Turn, step: number, input: StepInput): { outcome: StepOutcome; said: StepMessages } {
    const { store } = this.#ledger;
    const named = input.calls.flatMap((call) => store.task(taskNamed(call.input)) ?? []);
    const reported = [...turn.items.values()].flatMap((item) => (item.kind === "report" ? (store.task(item.report.taskId) ?? []) : []));
    const tasks = new Map([...store.tasks(), ...named, ...reported].map((task) => [task.id, task]));
    const facts = new Map(input.calls.flatMap((call) => this.#factNamed(call.input)).map((fact) => [fact.id, fact]));
    const speculation = this.#ledger.speculations.view(Date.now());
    const rows = { schedules: this.#ledger.schedules.list(), proposals: store.proposals(), speculation, facts };
    const view = { ...turn, ...this.#here(), ...rows, step, capped: input.tainted };
    const { progress, shortened, heard } = input;
    const outcome = decideStep({ ...view, progress, shortened, heard, tasks, machines: store.machines() }, input.calls);
    const known = new Set([...turn.items.keys(), ...namesOf(turn.turn, turn.items.keys()).keys()]);
    const keptId = `kept_${turn.turn}_${step}`;
    const said = stepMessages(input.reply, outcome, input.reads, { team: turn.lane === "team", tainted: input.before, known, keptId });
    return { outcome, said };
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
