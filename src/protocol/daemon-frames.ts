// Frames between a machine's daemon and its Endpoint object. JSON text, one object a frame.
// Flow: cloud `challenge` → daemon `hello` (signed) → cloud `welcome` → work. Every frame may be repeated; ids and offsets make that harmless.
import * as z from "zod/mini";
import { command, commandResult } from "./command.ts";
import { commandId, endpointId, taskId } from "./ids.ts";
import { limits } from "./limits.ts";

/** Raised with each change of these schemas that an older peer could not read; history in CHANGELOG. */
export const daemonProtocolVersion = 1;

const base64 = z.string().check(z.regex(/^[A-Za-z0-9+/]*={0,2}$/, "is not base64"));

/** [E16] It stands before models and people in each decision: a name, never a text. */
export const workspaceName = z
  .string()
  .check(z.regex(/^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,99}$/u, "must be 1 to 100 letters, digits, spaces, dots or dashes"));

/** `push`: the machine's owner lets tasks push their own branches from this folder. */
export const workspaceGrant = z.object({
  name: workspaceName,
  path: z.string().check(z.maxLength(4096)),
  push: z.optional(z.boolean()),
});

const shortWord = z.string().check(z.maxLength(100));

export const helloFrame = z.object({
  t: z.literal("hello"),
  v: z.number(),
  endpointId,
  /** Ed25519 over the UTF-8 text `switchyard-hello|v|endpointId|nonce|host` (see `helloText`), base64. */
  signature: base64,
  /** What the daemon is: version, platform, sandbox in use (`bwrap` or `unsandboxed`). */
  about: z.object({ version: shortWord, platform: shortWord, sandbox: z.enum(["bwrap", "unsandboxed", "none"]) }),
  workspaces: z.array(workspaceGrant).check(z.maxLength(limits.maxWorkspaces)),
  /** Commands in the journal whose result is not acknowledged yet; the cloud forgets nothing that is listed, and voids nothing that runs. */
  open: z.array(z.object({ commandId, state: z.enum(["accepted", "started", "finished"]), outputBytes: z.number() })),
});

export const daemonFrame = z.discriminatedUnion("t", [
  helloFrame,
  /** Journalled (fsync) and not started yet. */
  z.object({ t: z.literal("accepted"), commandId }),
  z.object({ t: z.literal("started"), commandId, atMs: z.number() }),
  /** Bytes `offset` to `offset + data` of the command's one output stream (stdout and stderr as they came). */
  z.object({ t: z.literal("output"), commandId, offset: z.number(), data: base64 }),
  /** Repeated after each reconnect until `result_ack`. */
  z.object({ t: z.literal("result"), result: commandResult }),
  /** The stop was carried out, or there was nothing to stop. */
  z.object({ t: z.literal("stopped"), commandId }),
]);
export type DaemonFrame = z.infer<typeof daemonFrame>;
export type HelloFrame = z.infer<typeof helloFrame>;

export const cloudFrame = z.discriminatedUnion("t", [
  z.object({ t: z.literal("challenge"), v: z.number(), nonce: z.string() }),
  z.object({
    t: z.literal("welcome"),
    epoch: z.number(),
    name: z.string(),
    pingMs: z.number(),
    output: z.array(z.object({ commandId, offset: z.number() })),
  }),
  z.object({ t: z.literal("run"), command }),
  z.object({ t: z.literal("stop"), commandId, graceMs: z.number() }),
  /** Output up to `offset` is durable in the cloud; the window moves. */
  z.object({ t: z.literal("output_ack"), commandId, offset: z.number() }),
  /** The result is durable in the cloud; the daemon may forget it. */
  z.object({ t: z.literal("result_ack"), commandId }),
  /** All open commands of a cancelled task at once; each is answered by `stopped`. */
  z.object({ t: z.literal("stop_task"), taskId, beforeEpoch: z.number(), graceMs: z.number() }),
]);
export type CloudFrame = z.infer<typeof cloudFrame>;

/** The text that a daemon signs to prove its identity: bound to nonce, endpoint and the host it dialled. */
export const helloText = (v: number, id: string, nonce: string, host: string): string => `switchyard-hello|${v}|${id}|${nonce}|${host}`;

/** Close codes of the daemon's socket. */
export const daemonClose = {
  /** A frame did not parse; the reason names the field. Fix the daemon before retrying. */
  protocolError: 4400,
  /** Wrong signature, or an unknown endpoint. */
  unauthorised: 4401,
  /** A newer connection holds this endpoint; wait at least `limits.supersededBackoffMs`. */
  superseded: 4409,
  /** The endpoint was revoked in the console: stop, do not retry. */
  revoked: 4410,
  /** Unknown protocol version. */
  version: 4426,
} as const;

/** `POST /api/daemon/enrol` */
export const enrolRequest = z.object({
  code: z.string().check(z.minLength(8), z.maxLength(100)),
  name: z.string().check(z.regex(/^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,59}$/u, "must be 1 to 60 letters, digits, spaces, dots or dashes")),
  /** Raw 32 bytes of the Ed25519 key, base64. */
  publicKey: base64.check(z.length(44)),
  platform: z.string().check(z.maxLength(100)),
});
export const enrolResponse = z.object({ endpointId, name: z.string() });
