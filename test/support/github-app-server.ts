// The stand-in's part for a GitHub App and for the list of deliveries of a webhook.
// `POST /control/app {id, publicKey, installations: {place: number}, tokenMs?}` · `POST /control/revoke-tokens` ·
// `POST /control/deliveries {hook, attempts}` (hook: `app`, or a webhook's number) · `GET /control/deliveries?hook=`
import { createVerify } from "node:crypto";

type App = { id: string; publicKey: string; installations: Record<string, number>; tokenMs?: number };
type Attempt = { id: number; guid: string; delivered_at: string; status_code: number; event: string; redelivery: boolean };

const pageMax = 100;

export function githubAppServer() {
  let app: App | null = null;
  let made = 0;
  let lastAttempt = 9_000_000;
  const tokens = new Map<string, { installation: number; untilMs: number }>();
  const deliveries = new Map<string, Attempt[]>();

  const attemptsOf = (hook: string): Attempt[] => {
    const known = deliveries.get(hook) ?? [];
    deliveries.set(hook, known);
    return known;
  };

  /** Who a bearer is: the App by its signed word, one of its installations, or a person's token. */
  function whoIs(bearer: string): "app" | "installation" | "person" | "nobody" {
    if (bearer.startsWith("ghs_")) {
      const known = tokens.get(bearer);
      return known && known.untilMs > Date.now() ? "installation" : "nobody";
    }
    const parts = bearer.split(".");
    if (parts.length !== 3) return "person";
    const [head = "", body = "", signature = ""] = parts;
    const claims = json(body);
    const nowS = Date.now() / 1000;
    const right =
      app !== null &&
      json(head).alg === "RS256" &&
      claims.iss === app.id &&
      Number(claims.iat) <= nowS &&
      Number(claims.exp) > nowS &&
      Number(claims.exp) - Number(claims.iat) <= 600 &&
      createVerify("RSA-SHA256").update(`${head}.${body}`).verify(app.publicKey, Buffer.from(signature, "base64url"));
    return right ? "app" : "nobody";
  }

  async function control(url: URL, request: Request): Promise<Response | null> {
    switch (`${request.method} ${url.pathname}`) {
      case "POST /control/app":
        app = (await request.json()) as App;
        return Response.json({ ok: true });
      case "POST /control/revoke-tokens":
        tokens.clear();
        return Response.json({ ok: true });
      case "POST /control/deliveries": {
        const input = (await request.json()) as { hook: string; attempts: Omit<Attempt, "redelivery">[] };
        attemptsOf(input.hook).push(...input.attempts.map((attempt) => ({ ...attempt, redelivery: false })));
        return Response.json({ ok: true });
      }
      case "GET /control/deliveries":
        return Response.json(attemptsOf(url.searchParams.get("hook") ?? ""));
      default:
        return null;
    }
  }

  /** The answer to a request of the API, or null where it is somebody else's. */
  function answer(request: Request, url: URL): Response | null {
    const who = whoIs((request.headers.get("authorization") ?? "").replace(/^Bearer /, ""));
    if (who === "nobody") return problem(401, "Bad credentials");
    const installation = /^\/repos\/([^/]+\/[^/]+)\/installation$/.exec(url.pathname)?.[1];
    if (installation !== undefined) {
      if (who !== "app") return problem(401, "A JSON web token could not be decoded");
      const id = app?.installations[installation];
      return id === undefined ? problem(404, "Not Found") : Response.json({ id, app_id: Number(app?.id) });
    }
    const token = /^\/app\/installations\/(\d+)\/access_tokens$/.exec(url.pathname)?.[1];
    if (token !== undefined && request.method === "POST") {
      if (who !== "app") return problem(401, "A JSON web token could not be decoded");
      const untilMs = Date.now() + (app?.tokenMs ?? 60 * 60_000);
      const name = `ghs_${++made}`;
      tokens.set(name, { installation: Number(token), untilMs });
      return Response.json({ token: name, expires_at: new Date(untilMs).toISOString() }, { status: 201 });
    }
    const [, hook, attempt] =
      /^\/(?:repos\/[^/]+\/[^/]+\/hooks|orgs\/[^/]+\/hooks)\/(\d+)\/deliveries(?:\/(\d+)\/attempts)?$/.exec(url.pathname) ??
      /^\/(app)\/hook\/deliveries(?:\/(\d+)\/attempts)?$/.exec(url.pathname) ??
      [];
    if (hook === undefined) return null;
    if ((hook === "app") !== (who === "app")) return problem(403, "Resource not accessible");
    if (attempt !== undefined) return repeat(hook, Number(attempt));
    const size = Math.min(pageMax, Number(url.searchParams.get("per_page") ?? 30));
    const sorted = attemptsOf(hook).toSorted((a, b) => Date.parse(b.delivered_at) - Date.parse(a.delivered_at) || b.id - a.id);
    const from = Number((url.searchParams.get("cursor") ?? "v1_0").slice(3));
    const next =
      from + size < sorted.length ? `<https://github.test${url.pathname}?per_page=${size}&cursor=v1_${from + size}>; rel="next"` : "";
    return Response.json(sorted.slice(from, from + size), next === "" ? {} : { headers: { link: next } });
  }

  /** Delivered again: it succeeds now. */
  function repeat(hook: string, id: number): Response {
    const attempt = attemptsOf(hook).find((each) => each.id === id);
    if (!attempt) return problem(404, "Not Found");
    const again = { ...attempt, id: ++lastAttempt, delivered_at: new Date().toISOString(), redelivery: true };
    // A delivery whose guid says so keeps failing.
    attemptsOf(hook).push({ ...again, status_code: attempt.guid.startsWith("broken") ? 500 : 202 });
    return Response.json({}, { status: 202 });
  }

  return { control, answer };
}

const problem = (status: number, message: string): Response => Response.json({ message }, { status });

function json(part: string): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
  } catch {
    // Not a token of the kind: its claims are none.
    return {};
  }
}
