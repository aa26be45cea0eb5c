// Ten thousand turns of a model that settles, answers and starts whatever it likes: nothing is said where it was not asked.
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ownerOf, threadIdOf } from "../../src/core/ids.ts";
import type { InboxItem } from "../../src/core/router.ts";
import { decideStep, type ItemProgress } from "../../src/core/router-decide.ts";
import { guest, member, owner, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const task = taskOf("running", { threadId: threadIdOf("web", "widget", "topic:running") });
const theirs = taskOf("theirs", { source: "github", threadId: threadIdOf("github", "acme/app", "issue:7") });
const ended = taskOf("ended", { status: "failed", endedMs: 1 });
const pool: InboxItem[] = [
  queuedTrigger({ name: "a1", by: member, text: "secretof-a1" }, 1),
  queuedTrigger({ name: "a2", by: member, text: "secretof-a2" }, 2),
  queuedTrigger({ name: "b1", by: owner, text: "secretof-b1" }, 1),
  queuedTrigger({ name: "g1", by: guest, text: "secretof-g1" }, 1),
  queuedTrigger({ name: "i1", by: member, thread: "7", text: "secretof-i1" }, 1),
  queuedTrigger({ name: "i2", by: owner, thread: "8", text: "secretof-i2" }, 1),
  queuedReport(reportOf({ task, confidence: 0.2 })),
  queuedReport(reportOf({ task: theirs, kind: "failed", status: "failed" })),
];
const reports = pool.flatMap((item) => (item.kind === "report" ? [item.id] : []));
const tasks = [task.id, theirs.id, ended.id, "tsk_none"];

const settles = fc.subarray([...pool.map(({ id }) => id), "trg_none-1"], { minLength: 1, maxLength: 3 });
const callOf = fc.oneof(
  fc.record({ tool: fc.constant("reply"), input: fc.record({ settles, text: fc.constant("words") }) }),
  fc.record({ tool: fc.constant("relay"), input: fc.record({ settles, report: fc.constantFrom(...reports, "rep_none") }) }),
  fc.record({
    tool: fc.constant("dispatch"),
    input: fc.record({ settles, title: fc.constant("t"), goal: fc.constant("g"), acknowledge: fc.constant("On it.") }),
  }),
  fc.record({ tool: fc.constant("deliver"), input: fc.record({ settles, task: fc.constantFrom(...tasks), facts: fc.constant("f") }) }),
  fc.record({
    tool: fc.constant("resolve"),
    input: fc.record({
      settles,
      task: fc.constantFrom(...tasks),
      how: fc.constantFrom("accept", "retry", "reopen"),
      note: fc.constant("n"),
    }),
  }),
  fc.record({ tool: fc.constant("ask_human"), input: fc.record({ settles, question: fc.constant("q") }) }),
  fc.record({ tool: fc.constant("record"), input: fc.record({ settles, reason: fc.constant("r") }) }),
  fc.record({ tool: fc.constant("set_policy"), input: fc.record({ settles, list: fc.constant(true) }) }),
);

test("[Q6] [H1] [RD4] in 10,000 interleavings of several conversations every word goes to the thread of what it settles, or to the task that the turn made of it", () => {
  let said = 0;
  void fc.assert(
    fc.property(fc.subarray(pool, { minLength: 2 }), fc.array(callOf, { minLength: 1, maxLength: 6 }), fc.nat(3), (items, calls, split) => {
      const byId = new Map(items.map((item) => [item.id, item]));
      let progress: ReadonlyMap<string, ItemProgress> = new Map();
      const topicsOf = new Map<string, string>();
      // In one step or in two: what an earlier step did counts in the later.
      for (const [step, part] of [calls.slice(0, split), calls.slice(split)].entries()) {
        const view = {
          turn: 1,
          step: step + 1,
          lane: "team" as const,
          capped: false,
          nowMs: 1,
          agentName: "S",
          items: byId,
          progress,
          tasks: new Map([task, theirs, ended].map((one) => [one.id, one])),
          machines: [],
          policies: [],
        };
        const outcome = decideStep(
          view,
          part.map((call, i) => ({ callId: `${i}`, ...call })),
        );
        progress = outcome.progress;
        for (const decision of outcome.decisions) {
          const threads = new Set(decision.settles.map((id) => byId.get(id)?.threadId ?? "none"));
          for (const effect of decision.effects)
            if (effect.kind === "open_topic") {
              expect(threads).toContain(effect.input.rootThreadId);
              topicsOf.set(effect.threadId, effect.input.rootThreadId);
            }
          for (const effect of decision.effects) {
            if (effect.kind !== "post" && effect.kind !== "policy") continue;
            said += 1;
            const { threadId } = effect;
            const post = effect.kind === "post" ? effect.input : effect.input.post;
            expect(post.threadId).toBe(threadId);
            expect(threads.has(threadId) || threads.has(topicsOf.get(threadId) ?? "")).toBe(true);
            // Whoever is answered reads it where they asked: words for several places at once are none's.
            if (decision.tool === "reply" || decision.tool === "relay")
              for (const thread of threads) expect([threadId, topicsOf.get(threadId)]).toContain(thread);
            // What it answers is of that very thread, or of the root above it: the thread checks the same again.
            if (post.triggerId !== undefined) expect([threadId, topicsOf.get(threadId)]).toContain(ownerOf(post.triggerId, "thr"));
          }
          // The words of one person are quoted to no task that answers to others.
          for (const effect of decision.effects) {
            if (effect.kind !== "start" && effect.kind !== "tell") continue;
            const own = items.filter(({ id }) => decision.settles.includes(id));
            const quoted = JSON.stringify(effect.input);
            for (const other of items)
              if (other.kind === "trigger" && !own.includes(other)) expect(quoted).not.toContain(other.trigger.text);
          }
        }
      }
    }),
    { numRuns: 10_000 },
  );
  expect(said).toBeGreaterThan(5_000);
});
