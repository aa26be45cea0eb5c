// The offline worker: one step of a task, from its transcript alone.
import { excerpt } from "../../core/context.ts";
import type { Answer, Chat } from "./chat.ts";
import { blocked, code, failed, type JobAnswer } from "./report-text.ts";
import { abilities } from "./router-plan.ts";
import { quoted } from "./unread.ts";
import { nextStep } from "./worker-jobs.ts";
import { type Done, foldWorker, type Job, type WorkerState } from "./worker-state.ts";
import { type Call, joined } from "./worker-steps.ts";

/** The first job that is neither replaced nor answered. */
const currentJob = (state: WorkerState): Job | undefined => state.jobs.find((job) => !job.replaced && !("answer" in nextStep(job, state)));

/** The next calls of a worker session. */
export function planWorker(chat: Chat): Answer {
  const state = foldWorker(chat, currentJob);
  if (state === null) return report(failed("I was started without a goal, so there is nothing that I can do."));
  const stops = commandsToStop(state);
  if (state.stopAsked) return stops.length > 0 ? { calls: stops } : stopped(state);
  const job = currentJob(state);
  if (job === undefined) return stops.length > 0 ? { calls: stops } : finished(state);
  const step = nextStep(job, state);
  if ("calls" in step) return { calls: [...stops, ...step.calls] };
  if (stops.length > 0) return { calls: stops };
  if ("ask" in step && (!job.asked || state.news))
    return {
      calls: [
        {
          tool: "report",
          input: { kind: "question", text: [...answersOf(state).map((each) => each.text), ...leftOut(state), step.ask].join("\n\n") },
        },
      ],
    };
  const wait: Call = { tool: "wait", input: { reason: "wait" in step ? step.wait : "for the next word" } };
  const answer = besideTheWork(state);
  return { calls: answer === "" ? [wait] : [{ tool: "report", input: { kind: "answer", text: answer } }, wait] };
}

/** One line to whoever spoke while something runs and is not answered by the result alone. */
function besideTheWork(state: WorkerState): string {
  if (!state.statusAsked && state.unclear.length === 0) return "";
  const where = state.goal.machine ? ` on ${state.goal.machine.name}` : "";
  const running = state.jobs.flatMap(openOf);
  const scripts = running.map((one) => code(excerpt(String(one.input.script).split("\n")[0] ?? "", 80)));
  const doing = scripts.length > 0 ? `I am running ${scripts.join(" and ")}${where}` : `I am reading the files${where}`;
  const not = state.unclear.length > 0 ? `I did not understand ${quoted(state.unclear)}. ` : "";
  return `${not}${doing}, and tell you as soon as ${scripts.length > 1 ? "they end" : scripts.length === 1 ? "it ends" : "I know more"}.`;
}

const openOf = (job: Job): Done[] =>
  job.done.filter((one) => one.tool === "run_command" && one.command !== undefined && one.result === undefined);

const runningOf = (job: Job): string[] => openOf(job).flatMap((one) => one.command ?? []);

/** Commands whose result nobody wants any more. */
function commandsToStop(state: WorkerState): Call[] {
  return state.jobs
    .filter((job) => job.replaced || state.stopAsked)
    .flatMap(runningOf)
    .filter((command) => !state.stopping.has(command))
    .map((command) => ({ tool: "stop_command", input: { command } }));
}

/** Asked to stop: said only when nothing of it runs any more. */
function stopped(state: WorkerState): Answer {
  const running = state.jobs.flatMap(runningOf);
  if (running.length > 0) return { calls: [{ tool: "wait", input: { reason: "for the stop of what still runs" } }] };
  const before = answersOf(state).map((answer) => answer.text);
  return report({ outcome: "done", confidence: 0.9, text: ["Stopped, as you asked.", ...before].join("\n\n") });
}

const answersOf = (state: WorkerState): JobAnswer[] =>
  state.jobs.flatMap((job) => {
    if (job.replaced || job.told) return [];
    const step = nextStep(job, state);
    return "answer" in step && !job.done.some((one) => one.result?.outcome === "stopped" && state.stopping.has(one.command ?? ""))
      ? [step.answer]
      : [];
  });

/** What was asked for and is not done, a sentence each. */
function leftOut(state: WorkerState): string[] {
  const said = state.declined.map((script) => `I did not run ${code(script)}.`);
  if (state.unable.length > 0)
    said.push(`The offline model cannot do the rest (${quoted(state.unable)}); that needs a real model, which an owner can set.`);
  if (state.unclear.length > 0) said.push(`I did not understand ${quoted(state.unclear)}. Spell a command out in backticks, and I run it.`);
  return said;
}

function finished(state: WorkerState): Answer {
  const answers = answersOf(state);
  const extra = leftOut(state);
  if (answers.length > 0) {
    const all = joined(answers);
    return report({ ...all, text: [all.text, ...extra].join("\n\n") });
  }
  if (state.jobs.length === 0) return report(failed([`The offline model does not know how to do this.`, ...extra, abilities].join("\n\n")));
  // Something was said after a report that left nothing to do.
  if (state.declined.length > 0) return report({ outcome: "done", confidence: 0.9, text: extra.join("\n\n") });
  if (extra.length > 0) return report(blocked(extra.join("\n\n")));
  return report({ outcome: "done", confidence: 0.9, text: "Nothing is left to do here." });
}

function report(answer: JobAnswer): Answer {
  const text = answer.text;
  return {
    calls: [
      {
        tool: "report",
        input: { kind: answer.outcome, text, ...(answer.outcome === "done" ? { confidence: answer.confidence } : {}) },
      },
    ],
  };
}
