// A GitHub App: it signs for itself with its private key, and acts in a repository by the short-lived token of its installation.
import { SignJWT } from "jose";
import * as z from "zod/mini";
import { putNewest } from "../../core/newest.ts";
import type { GitHubApp } from "../../env.ts";
import { Fault } from "../../protocol/fault.ts";
import { sendToGitHub } from "./http.ts";

const timeoutMs = 10_000;
/** GitHub takes ten minutes at most, and its clock may be behind ours. */
const jwtLifeMs = 9 * 60_000;
const jwtSkewMs = 60_000;
/** A token that ends within a call would fail in its middle. */
const renewBeforeMs = 5 * 60_000;
const installationCacheMs = 60 * 60_000;
const notInstalledCacheMs = 60_000;
const maxCached = 1_000;

const badKey = "GITHUB_APP_PRIVATE_KEY is no private key: paste the whole .pem file that GitHub gave you, with its BEGIN and END lines.";

// Results only, never promises: a promise of one request must not be awaited by another.
const keys = new Map<string, CryptoKey>();
const installations = new Map<string, { id: number | null; untilMs: number }>();
const tokens = new Map<string, { token: string; untilMs: number }>();

const installationAnswer = z.object({ id: z.number() });
const tokenAnswer = z.object({ token: z.string().check(z.minLength(1)), expires_at: z.string() });

/** The App's own word, for what concerns the App itself. */
export async function appJwt(app: GitHubApp, nowMs: number): Promise<string> {
  const key = keys.get(app.privateKey) ?? (await importKey(app.privateKey));
  putNewest(keys, app.privateKey, key, maxCached);
  return new SignJWT({})
    .setProtectedHeader({ alg: "RS256", typ: "JWT" })
    .setIssuer(app.id)
    .setIssuedAt(Math.floor((nowMs - jwtSkewMs) / 1000))
    .setExpirationTime(Math.floor((nowMs + jwtLifeMs) / 1000))
    .sign(key);
}

const installationKey = (apiUrl: string, app: GitHubApp, place: string): string => `${apiUrl} ${app.id} ${place}`.toLowerCase();

/** The token of the App's installation on a repository, kept until shortly before it ends; null where the App is not installed. */
export async function installationToken(apiUrl: string, app: GitHubApp, place: string, nowMs: number): Promise<string | null> {
  const id = await installationOf(apiUrl, app, place, nowMs);
  if (id === null) return null;
  const key = `${apiUrl} ${app.id} ${id}`;
  const known = tokens.get(key);
  if (known && known.untilMs > nowMs) return known.token;
  const path = `/app/installations/${id}/access_tokens`;
  // Two tokens harm nobody: a lost answer is simply asked for again.
  const { body } = await again(sendToGitHub(apiUrl, await appJwt(app, nowMs), { method: "POST", path, timeoutMs }));
  const answer = tokenAnswer.safeParse(body);
  if (!answer.success) throw new Fault("provider", "GitHub gave no token for the App's installation.", { retry: "later" });
  const endsMs = Date.parse(answer.data.expires_at);
  putNewest(tokens, key, { token: answer.data.token, untilMs: (Number.isFinite(endsMs) ? endsMs : nowMs) - renewBeforeMs }, maxCached);
  return answer.data.token;
}

/** Forgets what is known of a place, so that the next call asks GitHub again. */
export function forgetInstallation(apiUrl: string, app: GitHubApp, place: string): void {
  const key = installationKey(apiUrl, app, place);
  const id = installations.get(key)?.id;
  installations.delete(key);
  if (id !== null && id !== undefined) tokens.delete(`${apiUrl} ${app.id} ${id}`);
}

async function installationOf(apiUrl: string, app: GitHubApp, place: string, nowMs: number): Promise<number | null> {
  const key = installationKey(apiUrl, app, place);
  const known = installations.get(key);
  if (known && known.untilMs > nowMs) return known.id;
  let id: number | null;
  try {
    const { body } = await sendToGitHub(apiUrl, await appJwt(app, nowMs), {
      method: "GET",
      path: `/repos/${place}/installation`,
      timeoutMs,
    });
    const answer = installationAnswer.safeParse(body);
    if (!answer.success) throw new Fault("provider", "GitHub did not say which installation the App has there.", { retry: "later" });
    id = answer.data.id;
  } catch (error) {
    if (!(error instanceof Fault) || error.kind !== "not_found") throw error;
    id = null;
  }
  putNewest(installations, key, { id, untilMs: nowMs + (id === null ? notInstalledCacheMs : installationCacheMs) }, maxCached);
  return id;
}

/** What is only asked for may be asked for again, whatever became of it. */
async function again<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Fault && error.retry === "unknown") throw new Fault(error.kind, error.message, { retry: "later", cause: error });
    throw error;
  }
}

async function importKey(pem: string): Promise<CryptoKey> {
  // A secret store may have kept the line breaks as two characters.
  const text = pem.replaceAll("\\n", "\n");
  const [, kind, base64] = /-----BEGIN (RSA PRIVATE KEY|PRIVATE KEY)-----([\s\S]+?)-----END/.exec(text) ?? [];
  try {
    const der = Uint8Array.from(atob((base64 ?? "").replace(/\s+/g, "")), (char) => char.charCodeAt(0));
    const pkcs8 = kind === "PRIVATE KEY" ? der : toPkcs8(der);
    return await crypto.subtle.importKey("pkcs8", pkcs8, { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, false, ["sign"]);
  } catch (error) {
    throw new Fault("unauthorised", badKey, { cause: error });
  }
}

/** GitHub's files hold the bare RSA key (PKCS#1); WebCrypto wants it inside an envelope that says so (PKCS#8). */
function toPkcs8(pkcs1: Uint8Array): Uint8Array<ArrayBuffer> {
  const version = [0x02, 0x01, 0x00];
  const rsaEncryption = [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
  return Uint8Array.from(derOf(0x30, [...version, ...rsaEncryption, ...derOf(0x04, [...pkcs1])]));
}

function derOf(tag: number, content: readonly number[]): number[] {
  const { length } = content;
  if (length < 0x80) return [tag, length, ...content];
  return length < 0x100 ? [tag, 0x81, length, ...content] : [tag, 0x82, length >> 8, length & 0xff, ...content];
}
