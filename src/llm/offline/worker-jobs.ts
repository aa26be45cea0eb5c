// The next step of one job, from what its calls brought so far.
import { blocked, code, commandAnswer } from "./report-text.ts";
import {
  countAnswer,
  countScript,
  findScript,
  foundAnswer,
  gitAnswer,
  gitScript,
  listStep,
  readStep,
  searchStep,
} from "./worker-lookups.ts";
import { namedStep, projectStep } from "./worker-project.ts";
import type { Job, WorkerState } from "./worker-state.ts";
import { runStep, type Step, workspaceOf } from "./worker-steps.ts";

/** What comes next for a job. */
export function nextStep(job: Job, state: WorkerState): Step {
  const { machine } = state.goal;
  if (machine === null)
    return {
      answer: blocked(
        "No machine is connected, so nothing can run. Enrol one in the console (`npm run daemon -- enroll`), then ask me again.",
      ),
    };
  const workspace = workspaceOf(state);
  switch (job.intent.kind) {
    case "command":
      if (job.intent.unsure)
        return {
          ask: `Shall I really run ${code(job.intent.script)} on ${machine.name}? It may not be possible to undo it. Reply *yes* or *no*.`,
        };
      return runStep(
        job,
        state,
        [{ script: job.intent.script, ...(job.intent.cwd ? { cwd: job.intent.cwd } : {}), from: "" }],
        commandAnswer,
      );
    case "project":
      return projectStep(job, state, job.intent);
    case "script":
      return namedStep(job, state, job.intent.name);
    case "search":
      return searchStep(job, job.intent.query, { ...workspace, ...(job.intent.where ? { path: job.intent.where } : {}) }, false);
    case "count":
      if (job.intent.what === "matches") return searchStep(job, job.intent.of ?? "", workspace, true);
      return runStep(job, state, [{ script: countScript(job.intent), from: "" }], (run, name) => countAnswer(run, name));
    case "find_files":
      return runStep(job, state, [{ script: findScript(job.intent.pattern), from: "" }], (run) => foundAnswer(run));
    case "changes":
      return runStep(job, state, [{ script: gitScript(job.intent), from: "" }], (run) => gitAnswer(run));
    case "list":
      return listStep(job, { ...workspace, ...(job.intent.path ? { path: job.intent.path } : {}), depth: 2 });
    case "read":
      return readStep(job, state, job.intent.path);
  }
}
