// The generic webhook's signature, the same in both directions: `v1=` + HMAC-SHA256 over `timestamp.id.body`, in hex.

const encoder = new TextEncoder();
const scheme = "v1=";

export type Signed = { timestamp: string; id: string; body: Uint8Array<ArrayBuffer> };

export const signatureHeaders = {
  signature: "x-switchyard-signature",
  timestamp: "x-switchyard-timestamp",
  id: "x-switchyard-id",
} as const;

const keyOf = (secret: string, use: "sign" | "verify"): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [use]);

function signedBytes({ timestamp, id, body }: Signed): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(`${timestamp}.${id}.`);
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  return whole;
}

/** The three headers of a request of ours. */
export async function signHeaders(
  secret: string,
  id: string,
  body: Uint8Array<ArrayBuffer>,
  nowMs: number,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", await keyOf(secret, "sign"), signedBytes({ timestamp, id, body })));
  return {
    [signatureHeaders.signature]: scheme + Array.from(mac, (byte) => byte.toString(16).padStart(2, "0")).join(""),
    [signatureHeaders.timestamp]: timestamp,
    [signatureHeaders.id]: id,
  };
}

/** Whether a signature is right; WebCrypto compares in constant time. */
export async function isSigned(secret: string, signature: string, signed: Signed): Promise<boolean> {
  const hex = /^v1=([0-9a-f]{64})$/i.exec(signature)?.[1];
  if (hex === undefined) return false;
  const mac = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return crypto.subtle.verify("HMAC", await keyOf(secret, "verify"), mac, signedBytes(signed));
}
