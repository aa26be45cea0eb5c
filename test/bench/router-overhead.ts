// `npm run bench -- router-overhead`: CPU of a router's turn with 1 and with 20 triggers, against one bare `ai` step that is sent the same.
import { parseMessage } from "../../src/core/context.ts";
import { threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import type { RouterRpc } from "../../src/protocol/rpc.ts";
import type { DeliveredRow } from "../../src/protocol/thread.ts";
import { BareRuntime } from "./lib/bare.ts";
import { Deployment, place } from "./lib/deployment.ts";
import { type Result, ratioGoal, result } from "./lib/result.ts";
import { median } from "./lib/statistics.ts";
import type { StreamRequest } from "./lib/stream-model.ts";
import { Undisturbed } from "./lib/undisturbed.ts";
import { growth, pair, perTurn, Turns } from "./turn-cost.ts";

/** `lives`: how often a long one of `long` turns is measured; ten turns at one end of a single one are at the mercy of a pause. */
export type OverheadOptions = { pairs: number; turns: number; turnsOfMany: number; long: number; lives: number };
export const fullRouterOverhead: OverheadOptions = { pairs: 7, turns: 60, turnsOfMany: 12, long: 1_000, lives: 5 };
export const quickRouterOverhead: OverheadOptions = { pairs: 3, turns: 25, turnsOfMany: 8, long: 200, lives: 2 };

const few = 20;
const many = 220;
const manyTriggers = 20;

const threadKey = "issue:1";
const threadId = threadIdOf("github", place, threadKey);

/** A row of a thread, as it would come from there. */
function rowOf(seq: number): DeliveredRow {
  const trigger = {
    id: triggerIdOf("github", `row-${seq}`, threadId),
    source: "github",
    deliveryId: `row-${seq}`,
    threadId,
    place,
    threadKey,
    threadTitle: "Something",
    kind: "issue_comment.created",
    principal: { role: "member" as const, id: "member", name: "member" },
    addressed: false,
    text: `The second peak of ${seq} comes from the import that was repeated by hand, nothing to worry about.`,
    atMs: Date.now(),
    hops: 0,
  };
  const verdict = { outcome: "candidate" as const, rule: "bench", reason: "a comment" };
  return { row: { kind: "trigger", seq, atMs: Date.now(), trigger, verdict }, alsoWith: [] };
}

/** All that the last message brings is recorded, by its short names. */
function recordAll(_n: number, request: StreamRequest) {
  const message = parseMessage(request.messages.findLast(({ role }) => role === "user")?.content ?? "");
  const settles = (message?.items ?? []).flatMap((item) => (item.item === "trigger" ? [item.name ?? item.id] : []));
  return [{ tool: "record", input: { settles, reason: "talk" } }];
}

export async function routerOverhead(options: OverheadOptions): Promise<{ result: Result }> {
  const turns = await Turns.start();
  const bare = await BareRuntime.start();
  const deployment = await Deployment.start({ modelUrl: turns.model.url });
  let named = 0;
  try {
    const quiet = new Undisturbed(() => (deployment.cpuMs() + bare.cpuMs()) / 1_000, 2 * options.pairs);
    /** While a turn's request is out the next turn's triggers come. */
    const ours = async (triggers: number, pieces: number, count: number): Promise<number[]> => {
      const router = await deployment.object<RouterRpc>("ROUTER", `bench-router-${++named}`);
      let seq = 0;
      const deliver = async (): Promise<void> => {
        const rows = Array.from({ length: triggers }, () => rowOf(++seq));
        await router.deliver({ threadId, rows, before: [], tasks: [] });
      };
      const failed = Promise.withResolvers<never>();
      const marks = turns.take("router", {
        pieces,
        cpuMs: () => deployment.cpuMs(),
        until: count + 1,
        calls: (n, request) => {
          if (n <= count) deliver().catch(failed.reject);
          return recordAll(n, request);
        },
      });
      await deliver();
      return Promise.race([marks, failed.promise]);
    };
    const plain = async (pieces: number, count: number): Promise<number[]> => {
      const calls = recordAll;
      const marks = turns.take("bare", { pieces, calls, cpuMs: () => bare.cpuMs(), until: count + 1 });
      const like = turns.likeLast("router");
      await bare.turns(`bare-${++named}`, { baseUrl: turns.model.url, model: "bare", ...like, turns: count + 1 });
      return marks;
    };
    /** What only brings the triggers from this process into the runtime: no part of a turn. */
    const bringing = async (triggers: number, times: number): Promise<number> => {
      const rows = Array.from({ length: triggers }, (_, i) => rowOf(i + 1));
      const before = bare.cpuMs();
      for (let i = 0; i < times; i++) await bare.nothing("bare-nothing", { threadId, rows, before: [], tasks: [] });
      return (bare.cpuMs() - before) / times;
    };
    const measure = async (triggers: number, count: number) => {
      for (let warm = 0; warm < 2; warm++) {
        await ours(triggers, few, count);
        await plain(few, count);
        await bringing(triggers, count);
      }
      const turn: { ours: number; bare: number }[] = [];
      const token: { ours: number; bare: number }[] = [];
      for (let i = 0; i < options.pairs; i++) {
        const brought = await bringing(triggers, count);
        const both = (pieces: number) =>
          quiet.block(() =>
            pair(
              i % 2 === 0,
              async () => perTurn(await ours(triggers, pieces, count)) - brought,
              async () => perTurn(await plain(pieces, count)),
            ),
          );
        const short = await both(few);
        const wordy = await both(many);
        turn.push(short);
        token.push({ ours: (wordy.ours - short.ours) / (many - few), bare: (wordy.bare - short.bare) / (many - few) });
      }
      return { turn, token };
    };
    const one = await measure(1, options.turns);
    const twenty = await measure(manyTriggers, options.turnsOfMany);
    const { long } = options;
    const histories: number[][] = [];
    for (let i = 0; i < options.lives; i++) histories.push(await quiet.block(() => ours(1, few, long)));
    const ratio = ({ ours: a, bare: b }: { ours: number; bare: number }): number => a / b;
    const both = [...one.token, ...twenty.token];
    return {
      result: result(
        "router-overhead",
        {
          "CPU a turn with 1 trigger, ours, ms": median(one.turn.map((each) => each.ours)),
          "CPU a turn with 1 trigger, bare ai step, ms": median(one.turn.map((each) => each.bare)),
          [`CPU a turn with ${manyTriggers} triggers, ours, ms`]: median(twenty.turn.map((each) => each.ours)),
          [`CPU a turn with ${manyTriggers} triggers, bare ai step, ms`]: median(twenty.turn.map((each) => each.bare)),
          "CPU a streamed token, ours, µs": 1_000 * median(both.map((each) => each.ours)),
          "CPU a streamed token, bare ai step, µs": 1_000 * median(both.map((each) => each.bare)),
          "first ten turns, ms a turn": median(histories.map((history) => perTurn(history, 1, 11))),
          [`last ten of ${long} turns, ms a turn`]: median(histories.map((history) => perTurn(history, long - 10, long))),
          ...quiet.figures(),
        },
        [
          ratioGoal("CPU a turn with 1 trigger, ours / bare ai step", one.turn.map(ratio), "<=", 1.5),
          ratioGoal(`CPU a turn with ${manyTriggers} triggers, ours / bare ai step`, twenty.turn.map(ratio), "<=", 1.5),
          ratioGoal("CPU a streamed token, ours / bare ai step", both.map(ratio), "<=", 1.5),
          ratioGoal(`last ten of ${long} turns / first ten`, histories.map(growth), "<=", 1.3),
        ],
      ),
    };
  } finally {
    await deployment.stop();
    await bare.stop();
    await turns.model.close();
  }
}
