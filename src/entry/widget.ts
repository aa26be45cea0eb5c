// The widget's door: who is at the page, a ticket for one connection, and the upgrade of its socket.
import { bytesToHex } from "@noble/hashes/utils.js";
import { type Context, Hono } from "hono";
import * as z from "zod/mini";
import { upgraded } from "../channels/upgrade.ts";
import { refuseUpgrade, socketRequest } from "../channels/web-sockets.ts";
import { putNewest } from "../core/newest.ts";
import { type Bucket, guestSessionLimit, guestTicketLimit, type RateLimit, take } from "../core/rate-limit.ts";
import { rootThreadIdOf } from "../core/thread.ts";
import { type AppEnv, type Config, readConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { Principal } from "../protocol/principal.ts";
import { widgetClose, widgetProtocol } from "../protocol/widget-frames.ts";
import { fromD1 } from "../storage/from-d1.ts";
import { type Person, personById, redeemInvite } from "../storage/people.ts";
import { sessionSecret, signToken, type TokenClaims, verifyToken } from "../storage/tokens.ts";
import { bodyAtMost, bodyOf } from "./json-body.ts";
import { noUpgrade, refuseFailed, ticketBeside } from "./upgrade.ts";

/** An invite, an origin: nothing near this. */
const maxBodyBytes = 8 * 1024;
const sessionAudience = "widget-session";
const ticketAudience = "widget-ticket";
const withdrawn = "Your access was withdrawn. Ask the team for a new invite.";

type SessionClaims = TokenClaims & { role: string; name: string; origin: string };
type TicketClaims = SessionClaims & { jti: string };

const sessionRequest = z.object({
  invite: z.optional(z.nullable(z.string().check(z.maxLength(200)))),
  origin: z.string().check(z.maxLength(300)),
});

export const widgetDoor = new Hono<AppEnv>();

widgetDoor.use("/api/widget/*", async (c, next) => {
  c.header("cache-control", "no-store");
  await next();
});

const smallBody = bodyAtMost(maxBodyBytes, "This request");

widgetDoor.post("/api/widget/session", smallBody, async (c) => {
  const config = readConfig(c.env);
  const secret = sessionSecret(config);
  requireOwnOrigin(c);
  const { invite, origin } = await bodyOf(c, sessionRequest);
  requireHost(c, config, origin);
  const nowMs = Date.now();
  // Only Cloudflare knows addresses: elsewhere there is no header.
  const address = c.req.header("cf-connecting-ip");
  if (!invite && address !== undefined) admitGuest(address, guestSessionLimit, nowMs, "Too many guests came from this address at once");
  const person = invite ? await fromD1(c.env.DB, (db) => redeemInvite(db, invite, nowMs)) : null;
  const you: Principal = person ? principalOf(person) : { role: "guest", id: guestId(), name: "Guest" };
  const claims: SessionClaims = { sub: you.id, role: you.role, name: you.name, origin };
  const session = await signToken(secret, sessionAudience, claims, nowMs + limits.sessionMs, nowMs);
  return c.json({ session, you: { role: you.role, name: you.name } });
});

widgetDoor.post("/api/widget/ticket", smallBody, async (c) => {
  const config = readConfig(c.env);
  const secret = sessionSecret(config);
  requireOwnOrigin(c);
  const token = /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  const nowMs = Date.now();
  const session = token === undefined ? null : await verifyToken<SessionClaims>(secret, sessionAudience, token, nowMs);
  if (!session) throw new Fault("unauthorised", "This session is not known or too old. Reload the page.");
  requireHost(c, config, session.origin);
  const you = await currentPrincipal(c, session);
  if (!you) throw new Fault("forbidden", withdrawn);
  if (you.role === "guest") admitGuest(you.id, guestTicketLimit, nowMs, "This page connected too often");
  const claims: TicketClaims = { sub: you.id, role: you.role, name: you.name, origin: session.origin, jti: crypto.randomUUID() };
  const ticket = await signToken(secret, ticketAudience, claims, nowMs + limits.ticketMs, nowMs);
  return c.json({ ticket, rootThreadId: rootThreadIdOf(you.id) });
});

widgetDoor.get("/api/widget/socket", async (c) => {
  const wrong = noUpgrade(c, "Connect here with a WebSocket, as the widget does.");
  if (wrong !== null) return wrong;
  try {
    const config = readConfig(c.env);
    const secret = sessionSecret(config);
    requireOwnOrigin(c);
    const ticket = ticketBeside(c, widgetProtocol);
    const claims = ticket ? await verifyToken<TicketClaims>(secret, ticketAudience, ticket, Date.now()) : null;
    if (!claims) throw new Fault("unauthorised", "This ticket is wrong or too old; get a new one.");
    requireHost(c, config, claims.origin);
    const principal = await currentPrincipal(c, claims);
    if (!principal) return refuseUpgrade(widgetClose.revoked, withdrawn);
    const rootThreadId = rootThreadIdOf(principal.id);
    if (c.req.query("thread") !== rootThreadId) throw new Fault("unauthorised", "This ticket is for another conversation.");
    // A request of our own: nothing of the client's reaches the object but the socket.
    const grant = { principal, ticketId: claims.jti, expiresMs: claims.expiresMs };
    const answer = await c.env.THREAD.getByName(rootThreadId).fetch(socketRequest(grant));
    return upgraded(answer.webSocket, widgetProtocol);
  } catch (error) {
    return refuseFailed(error, "widget.socket", widgetProtocol, widgetClose.unauthorised);
  }
});

type Door = Context<AppEnv>;

const maxGuests = 10_000;
const guests = new Map<string, Bucket>();

/** [T10] Each session of a guest is a conversation of its own, and each connection is kept: both are bounded, `who` an address or a guest. */
function admitGuest(who: string, limit: RateLimit, nowMs: number, what: string): void {
  const taken = take(guests.get(who) ?? null, limit, nowMs);
  putNewest(guests, who, taken.bucket, maxGuests);
  if (!taken.ok) throw new Fault("rate_limited", `${what}. Try again in a minute.`, { retryAfterMs: taken.retryAfterMs });
}

/** The frame lives on our own origin; a call that says another one, or none, does not come from it. */
function requireOwnOrigin(c: Door): void {
  const own = new URL(c.req.url).origin;
  if (c.req.header("origin") !== own) throw new Fault("forbidden", `Only the widget's own page at ${own} may call this address.`);
}

/** Which pages may frame the widget is configuration; a session is bound to the page that it was made for. */
function requireHost(c: Door, config: Config, origin: string): void {
  const allowed = [new URL(c.req.url).origin, ...config.widgetOrigins];
  if (allowed.includes("*") || allowed.includes(origin)) return;
  throw new Fault("forbidden", `Pages at ${origin} may not show this widget. The owner allows them in WIDGET_ORIGINS.`);
}

/** Who the token's bearer is today, null when access was withdrawn. Read again each time; when it cannot be read nobody passes. */
async function currentPrincipal(c: Door, claims: SessionClaims): Promise<Principal | null> {
  if (claims.role === "guest") return { role: "guest", id: claims.sub, name: claims.name };
  const person = await fromD1(c.env.DB, (db) => personById(db, claims.sub));
  if (!person) throw new Fault("unauthorised", "This session's person is gone. Ask the team for a new invite.");
  return person.revokedMs === null ? principalOf(person) : null;
}

const principalOf = ({ id, name, role }: Person): Principal => ({ role, id, name });

/** A new guest: nobody knows who, always the same while the session lives. */
const guestId = (): string => `gst_${bytesToHex(crypto.getRandomValues(new Uint8Array(16)))}`;
