// Tokens that the Worker signs for itself (HS256): sessions, tickets, cookies. An audience keeps one kind from passing as another.
import { jwtVerify, SignJWT } from "jose";
import type { Config } from "../env.ts";
import { Fault } from "../protocol/fault.ts";

/** `subject` and whatever else the audience needs; plain JSON. */
export type TokenClaims = Record<string, unknown> & { sub: string };

const keyOf = (secret: string): Uint8Array => new TextEncoder().encode(secret);

/** A signed token, good until `expiresMs`. */
export function signToken(secret: string, audience: string, claims: TokenClaims, expiresMs: number, nowMs: number): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setAudience(audience)
    .setIssuedAt(Math.floor(nowMs / 1000))
    .setExpirationTime(Math.ceil(expiresMs / 1000))
    .sign(keyOf(secret));
}

/** The claims of a token of ours, and when it ends; null when it is forged, of another audience, or too old. */
export async function verifyToken<T extends TokenClaims>(
  secret: string,
  audience: string,
  token: string,
  nowMs: number,
): Promise<(T & { expiresMs: number }) | null> {
  try {
    const { payload } = await jwtVerify<T>(token, keyOf(secret), { audience, algorithms: ["HS256"], currentDate: new Date(nowMs) });
    if (typeof payload.sub !== "string" || payload.exp === undefined) return null;
    return { ...(payload as unknown as T), expiresMs: payload.exp * 1000 };
  } catch {
    // Whatever is wrong with it, it proves nothing; the caller says so in its own words.
    return null;
  }
}

/** The secret that signs sessions, or a fault that names it. */
export function sessionSecret(config: Config): string {
  if (config.sessionSecret !== null) return config.sessionSecret;
  throw new Fault(
    "unavailable",
    "SESSION_SECRET is missing, so nobody can be signed in. Set it with `npx wrangler secret put SESSION_SECRET` (locally in .dev.vars).",
  );
}
