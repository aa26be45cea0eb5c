// Checking webhooks: HMAC-SHA256 of the bytes as they came, compared in constant time by WebCrypto.
import { hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";

/** Keys as imported, never the promise of one: that would belong to the request that asked first. */
const keys = new Map<string, CryptoKey>();
/** A deployment has a secret for each source; more than that only tests have. */
const maxKeys = 20;

async function keyOf(secret: string): Promise<CryptoKey> {
  const known = keys.get(secret);
  if (known) return known;
  const key = await crypto.subtle.importKey("raw", utf8ToBytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  if (keys.size >= maxKeys) keys.clear();
  keys.set(secret, key);
  return key;
}

/** Whether `hex` is the MAC of the bytes. Without a secret nothing is. */
export async function isMac(secret: string, hex: string | undefined, bytes: Uint8Array<ArrayBuffer>): Promise<boolean> {
  if (secret === "" || hex === undefined || !/^[0-9a-f]{64}$/i.test(hex)) return false;
  return crypto.subtle.verify("HMAC", await keyOf(secret), hexToBytes(hex), bytes);
}

export async function macOf(secret: string, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign("HMAC", await keyOf(secret), bytes));
}
