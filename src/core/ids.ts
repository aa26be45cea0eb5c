// How ids are made: deterministic, so that a repeated event or effect finds the object of the first.
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { IdPrefix } from "../protocol/ids.ts";

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/** The first `length` base32 characters (5 bits each) of SHA-256 over the parts, which are joined so that no two lists collide. */
function digest(parts: readonly (string | number)[], length: number): string {
  const bytes = sha256(utf8ToBytes(JSON.stringify(parts)));
  let out = "";
  for (let i = 0; i < length; i++) {
    const bit = i * 5;
    const pair = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0);
    out += alphabet[(pair >> (11 - (bit & 7))) & 31];
  }
  return out;
}

/** Lowercase hex SHA-256 of a text's UTF-8. */
export const sha256Hex = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)));

/** An id of its own: 70 bits, e.g. `thr_k3j4h5g6f7d8aa`. */
export const makeId = (prefix: IdPrefix, ...parts: (string | number)[]): string => `${prefix}_${digest([prefix, ...parts], 14)}`;

/** An id that carries its owner (`trg_` its thread, `rep_` its task, `cmd_` its endpoint, `out_` its thread), so that recall needs no index. */
export const childId = (prefix: IdPrefix, ownerId: string, ...parts: (string | number)[]): string =>
  `${prefix}_${bodyOf(ownerId)}-${digest([prefix, ownerId, ...parts], 10)}`;

const bodyOf = (id: string): string => id.slice(id.indexOf("_") + 1);

/** The owner's id of a child id: `ownerOf("trg_abc-def", "thr")` is `thr_abc`; null when the id carries none. */
export function ownerOf(id: string, ownerPrefix: IdPrefix): string | null {
  const body = bodyOf(id);
  const dash = body.indexOf("-");
  return dash < 0 ? null : `${ownerPrefix}_${body.slice(0, dash)}`;
}

export const threadIdOf = (source: string, place: string, threadKey: string): string => makeId("thr", source, place, threadKey);
export const triggerIdOf = (source: string, deliveryId: string, threadId: string): string => childId("trg", threadId, source, deliveryId);
