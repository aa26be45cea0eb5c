// Who may use the console: the bearer of the operator token, or of the cookie that it was exchanged for.
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { sha256Hex } from "../core/ids.ts";
import { type AppEnv, boardName, type Config, readConfig } from "../env.ts";
import type { SessionAnswer } from "../protocol/console.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import { sessionSecret, signToken, type TokenClaims, verifyToken } from "../storage/tokens.ts";

export type Access = { via: "bearer" } | { via: "cookie"; sessionId: string; expiresMs: number };
export type ConsoleEnv = AppEnv & { Variables: { access: Access } };
export type ConsoleContext = Context<ConsoleEnv>;

const cookieName = "switchyard_console";
const cookiePath = "/api/console";
const sessionAudience = "console-session";

/** `op`: which operator token it was exchanged for, so that a changed token ends every session at once. */
type SessionClaims = TokenClaims & { op: string };

const fingerprint = (operatorToken: string): string => sha256Hex(`operator:${operatorToken}`).slice(0, 24);

const ownOrigin = (c: ConsoleContext): string => new URL(c.req.url).origin;

/** The operator token, or a fault that names it. */
function operatorToken(config: Config): string {
  if (config.operatorToken !== null) return config.operatorToken;
  throw new Fault(
    "unavailable",
    "OPERATOR_TOKEN is missing, so the console is closed. Set it with `npx wrangler secret put OPERATOR_TOKEN` (locally in .dev.vars).",
    { retry: "never" },
  );
}

/** Compares hashes in constant time: neither content nor length shows in the time that it takes. */
async function isOperatorToken(config: Config, given: string): Promise<boolean> {
  const digest = (text: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const [a, b] = await Promise.all([digest(operatorToken(config)), digest(given)]);
  return crypto.subtle.timingSafeEqual(a, b);
}

/** Refuses a change, or an upgrade, that another page caused. A caller without an Origin is no browser: it must have brought the token itself. */
export function requireOwnOrigin(c: ConsoleContext, via: Access["via"]): void {
  const origin = c.req.header("origin");
  if (origin === undefined && via === "bearer") return;
  if (origin !== ownOrigin(c)) throw new Fault("forbidden", `Only the console's own page at ${ownOrigin(c)} may do this.`);
}

/** The caller's access; throws a fault that says what to do when there is none. */
export async function requireOperator(c: ConsoleContext): Promise<Access> {
  const config = readConfig(c.env);
  const token = operatorToken(config);
  const bearer = /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  if (bearer !== undefined) {
    if (!(await isOperatorToken(config, bearer))) throw new Fault("unauthorised", wrongToken);
    requireOwnOrigin(c, "bearer");
    return { via: "bearer" };
  }
  const cookie = getCookie(c, cookieName);
  if (cookie === undefined) throw new Fault("unauthorised", "Sign in with the operator token first.");
  const claims = await verifyToken<SessionClaims>(sessionSecret(config), sessionAudience, cookie, Date.now());
  const open = claims !== null && claims.op === fingerprint(token) && (await isSessionOpen(c, claims.sub));
  if (!open) throw new Fault("unauthorised", "This session has ended. Sign in again.");
  if (c.req.method !== "GET") requireOwnOrigin(c, "cookie");
  return { via: "cookie", sessionId: claims.sub, expiresMs: claims.expiresMs };
}

/** What the page asks before anything else. That nobody has signed in yet is an answer, and no error in the browser's log. */
export async function lookForSession(c: ConsoleContext): Promise<SessionAnswer> {
  try {
    await requireOperator(c);
    return { open: true, message: null };
  } catch (error) {
    const fault = asFault(error);
    if (fault?.kind === "unauthorised") return { open: false, message: getCookie(c, cookieName) === undefined ? null : fault.message };
    if (fault?.kind === "unavailable" && fault.retry === "never") return { open: false, message: fault.message };
    throw error;
  }
}

const wrongToken = "This is not the operator token. A local start prints it; in a deployment it is the secret OPERATOR_TOKEN.";

const isSessionOpen = (c: ConsoleContext, sessionId: string): Promise<boolean> =>
  c.env.BOARD.getByName(boardName).isSessionOpen({ sessionId });

/** Exchanges the operator token for a cookie that scripts cannot read and other sites cannot send. */
export async function openSession(c: ConsoleContext, token: string): Promise<void> {
  const config = readConfig(c.env);
  const secret = sessionSecret(config);
  requireOwnOrigin(c, "bearer");
  if (!(await isOperatorToken(config, token))) throw new Fault("unauthorised", wrongToken);
  const nowMs = Date.now();
  const expiresMs = nowMs + limits.consoleSessionMs;
  const claims: SessionClaims = { sub: crypto.randomUUID(), op: fingerprint(operatorToken(config)) };
  setCookie(c, cookieName, await signToken(secret, sessionAudience, claims, expiresMs, nowMs), {
    httpOnly: true,
    sameSite: "Strict",
    secure: new URL(c.req.url).protocol === "https:",
    path: cookiePath,
    maxAge: limits.consoleSessionMs / 1000,
  });
}

/** Ends a session for good: the cookie is refused from now on, also a copy of it, and its sockets close. */
export async function closeSession(c: ConsoleContext, access: Access): Promise<void> {
  if (access.via === "cookie")
    await c.env.BOARD.getByName(boardName).closeSession({ sessionId: access.sessionId, expiresMs: access.expiresMs });
  deleteCookie(c, cookieName, { path: cookiePath });
}
