// Content in R2 by checksum. The id is the SHA-256, so a repeated put is the same object and damage is seen on reading.
import { Fault } from "../protocol/fault.ts";

/** Content type of a command's output. Whoever reads an artifact knows by it that no stranger wrote it. */
export const commandOutputType = "text/x-command-output; charset=utf-8";

const keyOf = (artifactId: string): string => `artifact/${artifactId}`;

async function artifactIdOf(bytes: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return `art_${Array.from(hash, (byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .slice(0, 40)}`;
}

/** Of a copy of what was read elsewhere: who may hear it, and whether it holds a stranger's words. */
export type Provenance = { audience: string; tainting: boolean };

/** Stores bytes and returns their artifact id. Idempotent. */
export async function putArtifact(store: R2Bucket, bytes: Uint8Array, contentType: string, from?: Provenance): Promise<string> {
  const artifactId = await artifactIdOf(bytes);
  const about = from === undefined ? {} : { customMetadata: { audience: from.audience, tainting: String(from.tainting) } };
  await store.put(keyOf(artifactId), bytes, { httpMetadata: { contentType }, ...about });
  return artifactId;
}

/** The bytes of an artifact, checked against its id; null when there is none. Throws `Fault("internal")` when they are damaged. */
export async function getArtifact(store: R2Bucket, artifactId: string): Promise<Uint8Array | null> {
  const object = await store.get(keyOf(artifactId));
  if (!object) return null;
  const bytes = new Uint8Array(await object.arrayBuffer());
  if ((await artifactIdOf(bytes)) !== artifactId)
    throw new Fault("internal", `The stored content of ${artifactId} does not match its checksum.`);
  return bytes;
}

/** What an artifact was stored as, and whence it is; null when there is none. */
export async function artifactAbout(store: R2Bucket, artifactId: string): Promise<{ type: string | null; from: Provenance | null } | null> {
  const head = await store.head(keyOf(artifactId));
  if (head === null) return null;
  const { audience, tainting } = head.customMetadata ?? {};
  const from = audience === undefined ? null : { audience, tainting: tainting !== "false" };
  return { type: head.httpMetadata?.contentType ?? null, from };
}
