// A stand-in for a team's own bridge behind GENERIC_REPLY_URL: checks our signature, keeps messages by their id, misbehaves on demand.
// `POST /control/faults {on, faults, retryAfter?}` (`on`: part of the body or address) · `GET /control/messages?contains=`
import { createHmac, timingSafeEqual } from "node:crypto";

type BridgeFault = "401" | "404" | "422" | "429" | "500" | "503" | "redirect" | "lost" | "drop";
type FaultScript = { on: string; faults: BridgeFault[]; retryAfter?: number };
type Kept = { id: string; body: Record<string, unknown>; headers: Record<string, string> };

const secret = "generic-test-secret";
const kept = new Map<string, Kept>();
const scripts: FaultScript[] = [];

/** What came in, broken off before its end: our side sees a connection that was lost. */
const brokenOff = (): Response =>
  new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("{"));
      },
      pull(controller) {
        controller.error(new Error("the stand-in dropped the connection"));
      },
    }),
  );

export async function handleGeneric(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const body = request.method === "POST" ? await request.text() : "";
  if (url.pathname === "/control/faults") {
    scripts.unshift(JSON.parse(body) as FaultScript);
    return Response.json({ ok: true });
  }
  if (url.pathname === "/control/messages") {
    const contains = url.searchParams.get("contains") ?? "";
    return Response.json([...kept.values()].filter((message) => JSON.stringify(message.body).includes(contains)));
  }
  const script = scripts.find(({ on, faults }) => faults.length > 0 && `${request.method} ${request.url} ${body}`.includes(on));
  const fault = script?.faults.shift();
  if (fault === "lost") return brokenOff();
  if (fault === "redirect") return new Response(null, { status: 307, headers: { location: "https://elsewhere.invalid/" } });
  if (fault !== undefined && fault !== "drop")
    return new Response("no", { status: Number(fault), headers: { "retry-after": String(script?.retryAfter ?? 1) } });
  const id = request.headers.get("x-switchyard-id") ?? "";
  if (!isSigned(request, id, body)) return new Response("bad signature", { status: 401 });
  if (request.method === "GET") {
    const known = kept.get(url.searchParams.get("id") ?? "");
    return known ? Response.json({ id: `bridge-${known.id}` }) : new Response("not here", { status: 404 });
  }
  if (!kept.has(id)) kept.set(id, { id, body: JSON.parse(body) as Record<string, unknown>, headers: Object.fromEntries(request.headers) });
  return fault === "drop" ? brokenOff() : Response.json({ id: `bridge-${id}` }, { status: 201 });
}

function isSigned(request: Request, id: string, body: string): boolean {
  const given = Buffer.from(request.headers.get("x-switchyard-signature") ?? "");
  const timestamp = request.headers.get("x-switchyard-timestamp") ?? "";
  const right = Buffer.from(`v1=${createHmac("sha256", secret).update(`${timestamp}.${id}.${body}`).digest("hex")}`);
  return given.length === right.length && timingSafeEqual(given, right);
}
