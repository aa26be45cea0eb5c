// A GitHub App for tests: a key pair made here, its public half known to the stand-in.
import { control } from "./github-deliveries.ts";

const pem = (kind: string, bytes: ArrayBuffer): string => {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return `-----BEGIN ${kind}-----\n${base64.match(/.{1,64}/g)?.join("\n")}\n-----END ${kind}-----\n`;
};

/** The bare RSA key inside its envelope: for 2048 bits the envelope's head is always 26 bytes. */
const envelopeBytes = 26;

export async function newApp(installations: Record<string, number>, tokenMs?: number) {
  const pair = (await crypto.subtle.generateKey(
    { name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
    true,
    ["sign", "verify"],
  )) as CryptoKeyPair;
  const pkcs8 = (await crypto.subtle.exportKey("pkcs8", pair.privateKey)) as ArrayBuffer;
  const spki = (await crypto.subtle.exportKey("spki", pair.publicKey)) as ArrayBuffer;
  const id = String(Math.floor(Math.random() * 1e9));
  await control("app", { id, publicKey: pem("PUBLIC KEY", spki), installations, ...(tokenMs === undefined ? {} : { tokenMs }) });
  return { id, privateKey: pem("RSA PRIVATE KEY", pkcs8.slice(envelopeBytes)), pkcs8: pem("PRIVATE KEY", pkcs8) };
}
