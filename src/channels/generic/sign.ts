// The generic webhook's signature, the same in both directions: `v1=` + HMAC-SHA256 over `timestamp.id.body`, in hex.
import { bytesToHex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { isMac, macOf } from "../mac.ts";

const scheme = "v1=";

export type Signed = { timestamp: string; id: string; body: Uint8Array<ArrayBuffer> };

export const signatureHeaders = {
  signature: "x-switchyard-signature",
  timestamp: "x-switchyard-timestamp",
  id: "x-switchyard-id",
} as const;

const signedBytes = ({ timestamp, id, body }: Signed): Uint8Array<ArrayBuffer> => concatBytes(utf8ToBytes(`${timestamp}.${id}.`), body);

/** The three headers of a request of ours. */
export async function signHeaders(
  secret: string,
  id: string,
  body: Uint8Array<ArrayBuffer>,
  nowMs: number,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const mac = await macOf(secret, signedBytes({ timestamp, id, body }));
  return {
    [signatureHeaders.signature]: scheme + bytesToHex(mac),
    [signatureHeaders.timestamp]: timestamp,
    [signatureHeaders.id]: id,
  };
}

/** Whether a signature is right. */
export const isSigned = (secret: string, signature: string, signed: Signed): Promise<boolean> =>
  isMac(secret, signature.startsWith(scheme) ? signature.slice(scheme.length) : undefined, signedBytes(signed));
