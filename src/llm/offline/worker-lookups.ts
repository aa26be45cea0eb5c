// Looking things up: search, lists, files, counts, what changed.
import { literal } from "../../core/regexp.ts";
import type { WorkIntent } from "./intents.ts";
import { blocked, code, commandAnswer, done, failed, type JobAnswer, linesAnswer, type Run, unusualEnd } from "./report-text.ts";
import { plainLines } from "./results.ts";
import { quoted, quotedPath } from "./shell.ts";
import type { Done, Job, WorkerState } from "./worker-state.ts";
import { ensure, listCalls, notRead, ok, pathsOf, readCall, type Step } from "./worker-steps.ts";

export function searchStep(job: Job, query: string, where: { workspace?: string; path?: string }, countOnly: boolean): Step {
  const got = ensure([{ tool: "search_files", input: { query: literal(query), ...where } }], job.done);
  if ("step" in got) return got.step;
  const [one] = got.results;
  const unread = one ? notRead(one) : null;
  if (unread) return { answer: unread };
  if (one && !ok(one)) return { answer: blocked(`The search failed: ${reasonOf(one)}`) };
  const lines = plainLines(one?.result?.output ?? "").filter(
    (line) => line !== "" && !line.startsWith("[cut after") && !/^No match in \d+ files?\.$/.test(line),
  );
  const cutShort = /^\[cut after|left out here; recall/m.test(one?.result?.output ?? "");
  const files = new Set(lines.map((line) => line.split(":")[0])).size;
  if (lines.length === 0) return { answer: done(`${code(query)} occurs in no file${where.path ? ` of ${code(where.path)}` : ""}.`) };
  const head = `${code(query)} occurs in ${cutShort ? "at least " : ""}${lines.length} ${lines.length === 1 ? "line" : "lines"} of ${files} ${files === 1 ? "file" : "files"}${countOnly ? "." : ":"}`;
  return { answer: countOnly ? done(head) : linesAnswer(head, lines, 12) };
}

const reasonOf = (one: Done): string =>
  one.result?.reason ?? (plainLines(one.result?.output ?? "").find((line) => line !== "") || "no reason was given");

export function listStep(job: Job, input: Record<string, unknown>): Step {
  const got = ensure([{ tool: "list_files", input }], job.done);
  if ("step" in got) return got.step;
  const [one] = got.results;
  const unread = one ? notRead(one) : null;
  if (unread) return { answer: unread };
  const path = typeof input.path === "string" ? input.path : "";
  if (one && !ok(one)) return { answer: blocked(`${path ? code(path) : "The workspace"} could not be listed: ${reasonOf(one)}`) };
  const lines = plainLines(one?.result?.output ?? "").filter((line) => line !== "");
  if (lines.length === 0 || lines[0] === "(empty)") return { answer: done(`${path ? code(path) : "The workspace"} is empty.`) };
  return { answer: linesAnswer(`Files${path ? ` in ${code(path)}` : ""}:`, lines, 40) };
}

export function readStep(job: Job, state: WorkerState, path: string): Step {
  const got = ensure([readCall(path, state)], job.done);
  if ("step" in got) return got.step;
  const [one] = got.results;
  const unread = one ? notRead(one) : null;
  if (unread) return { answer: unread };
  if (one && ok(one)) return { answer: fileAnswer(path, one) };
  const listed = ensure(listCalls(state), state.all);
  if ("step" in listed) return listed.step;
  const wanted = path.toLowerCase().split("/").at(-1) ?? "";
  const found = pathsOf(listed.results)
    .filter((each) => !each.endsWith("/"))
    .filter(
      (each) =>
        each
          .toLowerCase()
          .split("/")
          .at(-1)
          ?.replace(/\.(?:md|txt|rst|adoc)$/, "") === wanted.replace(/\.(?:md|txt|rst|adoc)$/, ""),
    )
    .sort((a, b) => a.split("/").length - b.split("/").length)[0];
  if (found === undefined || found === path)
    return { answer: failed(`${code(path)} could not be read: ${one ? reasonOf(one) : "it is not there"}`) };
  const second = ensure([readCall(found, state)], job.done);
  if ("step" in second) return second.step;
  const [other] = second.results;
  return {
    answer:
      other && ok(other)
        ? fileAnswer(found, other)
        : failed(`${code(found)} could not be read: ${other ? reasonOf(other) : "it is not there"}`),
  };
}

function fileAnswer(path: string, one: Done): JobAnswer {
  const lines = plainLines(one.result?.output ?? "");
  if (lines.every((line) => line.trim() === "")) return done(`${code(path)} is empty.`);
  const last = lines.findLastIndex((line) => line.trim() !== "");
  // A page folds what is long; channels with a manner of their own cut it.
  return linesAnswer(`${code(path)}:`, lines.slice(0, last + 1), 60, 600);
}

const notOurs = "-not -path '*/.git/*' -not -path '*/node_modules/*'";

export function countScript(intent: Extract<WorkIntent, { kind: "count" }>): string {
  const { of } = intent;
  if (intent.what === "lines") {
    if (of && !of.includes("*")) return `wc -l < ${quotedPath(of)}`;
    return `find . -type f ${of ? `-name ${quoted(of)} ` : ""}${notOurs} -exec cat {} + | wc -l`;
  }
  const name = of === undefined ? "" : of.startsWith("*") ? of : of.startsWith(".") ? `*${of}` : "";
  const where = of !== undefined && name === "" && of.includes("/") ? quotedPath(of) : ".";
  return `find ${where} -type f ${name ? `-name ${quoted(name)} ` : ""}${notOurs} -exec printf '%.0s.' {} + | wc -c`;
}

export function countAnswer(run: Run, machine: string): JobAnswer {
  const number = /^\s*(\d+)\s*$/.exec(run.output)?.[1];
  if (run.result.exit !== 0 || number === undefined) return commandAnswer(run, machine);
  if (/^wc -l/.test(run.script)) return done(`${number} lines (${code(run.script)}).`);
  return done(`${number} ${/wc -l$/.test(run.script) ? "lines" : "files"}, those of \`.git\` and \`node_modules\` left out.`);
}

export const findScript = (pattern: string): string =>
  `find . ${/[*?]/.test(pattern) ? `-name ${quoted(pattern)}` : pattern.includes(".") ? `-iname ${quoted(pattern)}` : `-iname ${quoted(`*${pattern}*`)}`} ${notOurs} | sort | head -n 50`;

export function foundAnswer(run: Run): JobAnswer {
  const unusual = unusualEnd(run);
  if (unusual) return unusual;
  const lines = plainLines(run.output).filter((line) => line !== "");
  if (lines.length === 0) return done("No file of that name is here.");
  return linesAnswer(
    `${lines.length === 50 ? "The first 50" : lines.length} ${lines.length === 1 ? "file" : "files"}:`,
    lines.map((line) => line.replace(/^\.\//, "")),
    30,
  );
}

export function gitScript(intent: Extract<WorkIntent, { kind: "changes" }>): string {
  const status = "echo 'Not committed:' && git status --short";
  if (intent.uncommitted) return `${status} && git diff --stat`;
  const since = intent.since ? ` --since=${quoted(intent.since)}` : "";
  return `git log${since} -n ${intent.commits ?? 15} --date=short --pretty='%h %ad %an: %s' && ${status}`;
}

export function gitAnswer(run: Run): JobAnswer {
  const unusual = unusualEnd(run);
  if (unusual) return unusual;
  if (/not a git repository/i.test(run.output)) return done("This folder is not a git repository, so I cannot tell what changed.");
  if (/does not have any commits yet/i.test(run.output)) return done("This git repository has no commits yet.");
  if (run.result.exit !== 0) return commandAnswer(run, "the machine");
  const lines = plainLines(run.output).filter((line) => line !== "");
  const at = lines.indexOf("Not committed:");
  const commits = lines.slice(0, Math.max(0, at));
  const local = lines.slice(at + 1);
  if (commits.length === 0 && local.length === 0) return done("Nothing: no commits in that time, and nothing that is not committed.");
  const head = /^git log/.test(run.script)
    ? `${commits.length} ${commits.length === 1 ? "commit" : "commits"}, ${local.length} ${local.length === 1 ? "file" : "files"} not committed:`
    : `${local.length > 0 ? "Not committed" : "Everything is committed"}:`;
  return linesAnswer(head, [...commits, ...(commits.length > 0 && local.length > 0 ? ["not committed:"] : []), ...local], 20);
}
