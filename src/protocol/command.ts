// A command for a machine: what may be asked of a daemon, and how it ends.
import * as z from "zod/mini";
import { commandId, taskId } from "./ids.ts";
import { limits } from "./limits.ts";
import { authority } from "./principal.ts";

const path = z.string().check(z.minLength(1), z.maxLength(4096));
/** Name of a granted folder; the daemon knows where it is. */
const workspace = z.string().check(z.minLength(1), z.maxLength(100));

const branch = z.string().check(z.maxLength(200));
const sha = z.string().check(z.regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/, "is not a commit"));
/** `owner/name`, the last two parts of the remote's address. */
const repository = z.string().check(z.maxLength(300));
/** A commit as a daemon names it. `base`: the remote's default branch, where it says so. */
const commit = z.object({ sha, branch, place: repository, base: z.optional(z.string().check(z.maxLength(300))) });

/** Paths are relative to the workspace; the daemon refuses those that leave it. */
export const commandSpec = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("shell"),
    workspace,
    script: z.string().check(z.minLength(1), z.maxLength(32_000)),
    cwd: z.optional(path),
    stdin: z.optional(z.string().check(z.maxLength(64_000))),
  }),
  z.object({ kind: z.literal("read_file"), workspace, path, offset: z.optional(z.number()), limit: z.optional(z.number()) }),
  z.object({ kind: z.literal("write_file"), workspace, path, content: z.string().check(z.maxLength(limits.maxFileBytes)) }),
  z.object({
    kind: z.literal("edit_file"),
    workspace,
    path,
    old: z.string().check(z.minLength(1)),
    new: z.string(),
    all: z.optional(z.boolean()),
  }),
  z.object({ kind: z.literal("list_files"), workspace, path: z.optional(path), depth: z.optional(z.number()) }),
  z.object({
    kind: z.literal("search_files"),
    workspace,
    query: z.string().check(z.minLength(1), z.maxLength(1000)),
    path: z.optional(path),
    glob: z.optional(z.string()),
  }),
  /** The task's own branch, from where the repository of `cwd` stands, with the machine's own git: outside the sandbox, by the daemon. */
  z.object({ kind: z.literal("push"), workspace, cwd: z.optional(path), branch }),
  /** The same without the push: the daemon says which commit it would push, and nothing leaves. */
  z.object({ kind: z.literal("keep"), workspace, cwd: z.optional(path), branch }),
  /** A commit that was kept, wherever the repository stands by now, to the place that it was kept for; no other. */
  z.object({ kind: z.literal("push_kept"), workspace, cwd: z.optional(path), branch, sha, place: repository }),
]);
export type CommandSpec = z.infer<typeof commandSpec>;
/** What is about the task's own branch. */
export type PushSpec = Extract<CommandSpec, { kind: "push" | "keep" | "push_kept" }>;
export const isPush = (spec: CommandSpec): spec is PushSpec => spec.kind === "push" || spec.kind === "keep" || spec.kind === "push_kept";

export const command = z.object({
  commandId,
  taskId,
  /** The task's epoch: raised by a cancel, so that what belongs to an older one is void. */
  epoch: z.number(),
  spec: commandSpec,
  authority,
  tainted: z.boolean(),
  timeoutMs: z.number(),
  notAfterMs: z.number(),
  atMs: z.number(),
});
export type Command = z.infer<typeof command>;

/**
 * As it enters the ledger of a machine. `speculative`: nobody asked for its task, so it waits while anything else is open there.
 * `audience`: who may hear its output (see core/audience.ts).
 */
export type QueuedCommand = Command & { speculative?: boolean; audience?: string };

/** How a command ended. `outcome_unknown`: it started, and nobody saw its end; it is never rerun. */
export const commandOutcomes = ["exited", "stopped", "timed_out", "refused", "expired", "void", "outcome_unknown"] as const;

export const commandResult = z.object({
  commandId,
  outcome: z.enum(commandOutcomes),
  /** Exit code of a shell command; null when a signal ended it or nothing ran. */
  exitCode: z.nullable(z.number()),
  signal: z.optional(z.string().check(z.maxLength(40))),
  /** Why it was refused, or what else a reader must know. */
  reason: z.optional(z.string().check(z.maxLength(2000))),
  /** Total bytes of output that the command wrote. */
  outputBytes: z.number(),
  /** Bytes cut out of the middle; 0 when the output is whole. */
  truncatedBytes: z.number(),
  startedMs: z.nullable(z.number()),
  endedMs: z.number(),
  /** Of a push that succeeded, by the daemon's own word: no output of a program is read for it, but for `base`. */
  pushed: z.optional(commit),
  /** The same of a commit that was only kept. */
  kept: z.optional(commit),
});
export type CommandResult = z.infer<typeof commandResult>;
/** By the daemon's own word. */
export type NamedCommit = z.infer<typeof commit>;

/** A result as the worker session gets it: output inline when short, else head, tail and the artifact with all of it. */
export type SettledCommand = CommandResult & {
  taskId: string;
  endpointId: string;
  output: { text: string; spilled: false } | { head: string; tail: string; artifactId: string; totalBytes: number; spilled: true };
};

export type CommandState = "queued" | "sent" | "accepted" | "started" | "settled";
