// The daemon's side of a socket, as bytes: frames that parse or say why not, and the proof of identity in a hello.
import { closeReason } from "../core/close-frame.ts";
import type { EndpointInput } from "../core/command-ledger.ts";
import { isRecord } from "../core/json.ts";
import {
  type DaemonFrame,
  daemonClose,
  daemonFrame,
  daemonProtocolVersion,
  type HelloFrame,
  helloText,
} from "../protocol/daemon-frames.ts";
import { messageOf } from "../protocol/fault.ts";
import { firstIssue } from "../protocol/issue.ts";
import { limits } from "../protocol/limits.ts";

export type Refusal = { code: number; reason: string };
export type ParsedFrame = { frame: DaemonFrame; refusal?: undefined } | { frame?: undefined; refusal: Refusal };

const broken = (problem: string): ParsedFrame => ({
  refusal: { code: daemonClose.protocolError, reason: closeReason(`protocol error: ${problem}`) },
});

/** Parses one frame; a refusal names the field that is wrong. */
export function parseDaemonFrame(message: string | ArrayBuffer): ParsedFrame {
  if (typeof message !== "string") return broken("frame: must be JSON text, not binary");
  if (message.length > limits.maxFrameBytes) return broken(`frame: is larger than ${limits.maxFrameBytes} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(message);
  } catch (error) {
    return broken(`frame: is not JSON (${messageOf(error)})`);
  }
  // Another version may have another form of hello: it hears about the version, not about a field.
  if (isHello(value) && value.v !== daemonProtocolVersion) {
    const reason = `this deployment speaks daemon protocol ${daemonProtocolVersion}; install the daemon of its version`;
    return { refusal: { code: daemonClose.version, reason } };
  }
  const parsed = daemonFrame.safeParse(value);
  return parsed.success ? { frame: parsed.data } : broken(firstIssue(parsed.error, "frame"));
}

const isHello = (value: unknown): value is { t: "hello"; v: number } =>
  isRecord(value) && value.t === "hello" && typeof value.v === "number";

/** The bytes of a frame's base64, or null when it is none. */
export function bytesOfBase64(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    // The schema's pattern lets wrong lengths pass; `atob` is the judge, and null is refused as a protocol error.
    return null;
  }
}

/** True when the hello was signed for exactly this challenge and host by the endpoint's own key. */
export async function verifyHello(publicKey: string, hello: HelloFrame, challenge: { nonce: string; host: string }): Promise<boolean> {
  const key = bytesOfBase64(publicKey);
  const signature = bytesOfBase64(hello.signature);
  if (key?.length !== 32 || signature?.length !== 64) return false;
  const text = new TextEncoder().encode(helloText(hello.v, hello.endpointId, challenge.nonce, challenge.host));
  const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", imported, signature, text);
}

/** What a frame other than the hello asks the ledger to decide. */
export function inputOf(frame: Exclude<DaemonFrame, HelloFrame>, bytes: number): EndpointInput {
  switch (frame.t) {
    case "accepted":
      return { kind: "accepted", commandId: frame.commandId };
    case "stopped":
      return { kind: "stopped", commandId: frame.commandId };
    case "started":
      return { kind: "started", commandId: frame.commandId, atMs: frame.atMs };
    case "output":
      return { kind: "output", commandId: frame.commandId, offset: frame.offset, bytes };
    case "result":
      return { kind: "result", result: frame.result };
  }
}
