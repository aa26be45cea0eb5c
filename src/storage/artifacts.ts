// Content in R2 by checksum. The id is the SHA-256 of the content and of who may hear it, so a repeated put is the same object, damage
// is seen on reading, and what two tasks wrote alike is two objects, each with an audience of its own.
import { bytesToHex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { Fault } from "../protocol/fault.ts";

/** Content type of a command's output. */
export const commandOutputType = "text/x-command-output; charset=utf-8";

const keyOf = (artifactId: string): string => `artifact/${artifactId}`;

/** Who may hear it, and whether it holds a stranger's words. */
export type Provenance = { audience: string; tainting: boolean };

async function artifactIdOf(bytes: Uint8Array, from: Provenance | null): Promise<string> {
  const whence = utf8ToBytes(from === null ? "" : JSON.stringify([from.audience, from.tainting]));
  const hash = await crypto.subtle.digest("SHA-256", concatBytes(whence, bytes));
  return `art_${bytesToHex(new Uint8Array(hash)).slice(0, 40)}`;
}

/** Stores bytes and returns their artifact id. Idempotent. */
export async function putArtifact(store: R2Bucket, bytes: Uint8Array, contentType: string, from: Provenance): Promise<string> {
  const artifactId = await artifactIdOf(bytes, from);
  const customMetadata = { audience: from.audience, tainting: String(from.tainting) };
  await store.put(keyOf(artifactId), bytes, { httpMetadata: { contentType }, customMetadata });
  return artifactId;
}

/**
 * The bytes of an artifact, and whence they are where that was kept; checked against its id. Null when there is none. Throws
 * `Fault("internal")` when they are damaged.
 */
export async function getArtifact(store: R2Bucket, artifactId: string): Promise<{ bytes: Uint8Array; from: Provenance | null } | null> {
  const object = await store.get(keyOf(artifactId));
  if (!object) return null;
  const bytes = new Uint8Array(await object.arrayBuffer());
  const { audience, tainting } = object.customMetadata ?? {};
  const from = audience === undefined ? null : { audience, tainting: tainting !== "false" };
  if ((await artifactIdOf(bytes, from)) !== artifactId)
    throw new Fault("internal", `The stored content of ${artifactId} does not match its checksum.`);
  return { bytes, from };
}
