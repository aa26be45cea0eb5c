// A stand-in of GitHub's REST API: permissions, comments, reactions, review replies. It keeps what it was told, and misbehaves on demand.
// `POST /control/permission {place, login, permission, roleName?}` · `POST /control/faults {on, faults, retryAfter?}` ·
// `POST /control/comment {place, number, body, login?}` · `GET /control/comments?place=&number=` · `GET /control/requests?contains=` ·
// `GET /control/pulls?place=` · `GET /control/labels?place=&number=` · `POST /control/delete-comment {place, id}`
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { githubAppServer } from "./github-app-server.ts";
import { githubReactions } from "./github-reactions.ts";

/** `drop`: the request takes effect, then the connection breaks. `lost`: it breaks before anything happened. `silent`: it takes effect, and no answer comes. */
type GitHubFault =
  | "401"
  | "403"
  | "404"
  | "410"
  | "422"
  | "429"
  | "500"
  | "502"
  | "503"
  | "secondary_limit"
  | "primary_limit"
  | "redirect"
  | "html"
  | "hang"
  | "silent"
  | "drop"
  | "lost";

type GitHubComment = {
  id: number;
  body: string;
  user: { login: string; type: string };
  created_at: string;
  updated_at: string;
  html_url: string;
};

type GitHubPullRequest = {
  number: number;
  title: string;
  body: string;
  state: "open" | "closed";
  draft: boolean;
  user: { login: string; type: string };
  head: { ref: string; label: string };
  base: { ref: string };
  html_url: string;
};

type FaultScript = { on: string; faults: (GitHubFault | null)[]; retryAfter?: number };
type Seen = { method: string; path: string; body: string; headers: Record<string, string> };

const hangMs = 5 * 60_000;
const kept = 5_000;

/** Thrown where a real server would close the connection without an answer. */
class ConnectionBroken extends Error {}

function gitHubServer(login = "switchyard-bot") {
  const comments = new Map<string, GitHubComment[]>();
  const permissions = new Map<string, { permission: string; role_name: string }>();
  const pulls = new Map<string, GitHubPullRequest[]>();
  const labels = new Map<string, string[]>();
  const scripts: FaultScript[] = [];
  const seen: Seen[] = [];
  const app = githubAppServer();
  const reactions = githubReactions((place, kind, id) =>
    [...comments].some(
      ([key, list]) =>
        key.startsWith(`${place}#`.toLowerCase()) && key.includes("#review:") === (kind === "pulls") && list.some((each) => each.id === id),
    ),
  );
  let lastId = 1_000_000;

  const permit = (place: string, who: string, permission: string, roleName = permission): void => {
    permissions.set(`${place} ${who}`.toLowerCase(), { permission, role_name: roleName });
  };
  const fault = (script: FaultScript): void => {
    scripts.unshift(script);
  };
  const listOf = (place: string, number: number | string): GitHubComment[] => {
    const key = `${place}#${number}`.toLowerCase();
    const known = comments.get(key) ?? [];
    comments.set(key, known);
    return known;
  };
  const comment = (place: string, number: number | string, body: string, by = login): GitHubComment => {
    const id = ++lastId;
    const at = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    const added = {
      id,
      body,
      user: { login: by, type: by.endsWith("[bot]") ? "Bot" : "User" },
      created_at: at,
      updated_at: at,
      html_url: `https://github.com/${place}/issues/${number}#issuecomment-${id}`,
    };
    listOf(place, number).push(added);
    return added;
  };
  const pullsOf = (place: string): GitHubPullRequest[] => {
    const known = pulls.get(place.toLowerCase()) ?? [];
    pulls.set(place.toLowerCase(), known);
    return known;
  };
  const labelsOf = (place: string, number: string): string[] => {
    const key = `${place}#${number}`.toLowerCase();
    const known = labels.get(key) ?? [];
    labels.set(key, known);
    return known;
  };
  const requests = (contains = ""): Seen[] => seen.filter((each) => `${each.method} ${each.path} ${each.body}`.includes(contains));

  async function handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const path = url.pathname + url.search;
    if (url.pathname.startsWith("/control/")) return control(url, request);
    const body = request.method === "GET" ? "" : await request.text();
    seen.push({ method: request.method, path, body, headers: Object.fromEntries(request.headers) });
    if (seen.length > kept) seen.shift();

    const script = scripts.find(({ on, faults }) => faults.length > 0 && `${request.method} ${path}`.includes(on));
    const due = script?.faults.shift() ?? null;
    const failure = due === null ? null : await misbehave(due, script?.retryAfter ?? 1);
    if (failure) return failure;
    const response = answer(request, url, body);
    if (due === "drop") throw new ConnectionBroken("the stand-in dropped the connection");
    if (due === "silent") await pause(hangMs);
    return response;
  }

  async function control(url: URL, request: Request): Promise<Response> {
    const ofPart = (await app.control(url, request)) ?? (await reactions.control(url, request));
    if (ofPart) return ofPart;
    switch (`${request.method} ${url.pathname}`) {
      case "POST /control/permission": {
        const input = (await request.json()) as { place: string; login: string; permission: string; roleName?: string };
        permit(input.place, input.login, input.permission, input.roleName);
        return Response.json({ ok: true });
      }
      case "POST /control/faults":
        fault((await request.json()) as FaultScript);
        return Response.json({ ok: true });
      case "POST /control/comment": {
        const input = (await request.json()) as { place: string; number: number; body: string; login?: string };
        return Response.json(comment(input.place, input.number, input.body, input.login));
      }
      case "POST /control/delete-comment": {
        const { place, id } = (await request.json()) as { place: string; id: number };
        for (const [key, list] of comments)
          if (key.startsWith(`${place}#`.toLowerCase()))
            comments.set(
              key,
              list.filter((each) => each.id !== id),
            );
        return Response.json({ ok: true });
      }
      case "GET /control/comments":
        return Response.json(listOf(url.searchParams.get("place") ?? "", url.searchParams.get("number") ?? ""));
      case "GET /control/pulls":
        return Response.json(pullsOf(url.searchParams.get("place") ?? ""));
      case "GET /control/labels":
        return Response.json(labelsOf(url.searchParams.get("place") ?? "", url.searchParams.get("number") ?? ""));
      case "GET /control/requests":
        return Response.json(requests(url.searchParams.get("contains") ?? ""));
      default:
        return problem(404, `nothing at ${url.pathname}`);
    }
  }

  function answer(request: Request, url: URL, body: string): Response {
    if (!/^Bearer .+/.test(request.headers.get("authorization") ?? "")) return problem(401, "Requires authentication");
    if (!request.headers.get("user-agent"))
      return problem(403, "Request forbidden by administrative rules. Please add a User-Agent header");
    const ofPart = app.answer(request, url) ?? reactions.answer(request, url);
    if (ofPart) return ofPart;
    const permission = /^\/repos\/([^/]+\/[^/]+)\/collaborators\/([^/]+)\/permission$/.exec(url.pathname);
    if (permission && request.method === "GET") {
      const who = decodeURIComponent(permission[2] ?? "");
      const known = permissions.get(`${permission[1]} ${who}`.toLowerCase()) ?? { permission: "read", role_name: "read" };
      return Response.json({ ...known, user: { login: who } });
    }
    const thread = /^\/repos\/([^/]+\/[^/]+)\/issues\/(\d+)\/comments$/.exec(url.pathname);
    if (thread) return issueComments(request, url, body, thread[1] ?? "", thread[2] ?? "");
    const pullList = /^\/repos\/([^/]+\/[^/]+)\/pulls$/.exec(url.pathname);
    if (pullList) return pullRequests(request, url, body, pullList[1] ?? "");
    const labelList = /^\/repos\/([^/]+\/[^/]+)\/issues\/(\d+)\/labels$/.exec(url.pathname);
    if (labelList) return issueLabels(request, body, labelList[1] ?? "", labelList[2] ?? "");
    const inReview = /^\/repos\/([^/]+\/[^/]+)\/pulls\/(\d+)\/comments$/.exec(url.pathname);
    if (inReview && request.method === "GET") return issueComments(request, url, body, inReview[1] ?? "", `review:${inReview[2]}`);
    const reply = /^\/repos\/([^/]+\/[^/]+)\/pulls\/(\d+)\/comments\/(\d+)\/replies$/.exec(url.pathname);
    if (reply && request.method === "POST") {
      const text = textOf(body);
      if (text === null) return problem(422, "Validation Failed");
      return Response.json({ ...comment(reply[1] ?? "", `review:${reply[2]}`, text), in_reply_to_id: Number(reply[3]) }, { status: 201 });
    }
    return problem(404, "Not Found");
  }

  function issueComments(request: Request, url: URL, body: string, place: string, number: string): Response {
    if (request.method === "POST") {
      const text = textOf(body);
      if (text === null) return problem(422, "Validation Failed");
      if (text.length > 65_536) return problem(422, "Body is too long (maximum is 65536 characters)");
      return Response.json(comment(place, number, text), { status: 201 });
    }
    const since = Date.parse(url.searchParams.get("since") ?? "");
    const size = Math.min(100, Number(url.searchParams.get("per_page") ?? 30));
    const from = (Number(url.searchParams.get("page") ?? 1) - 1) * size;
    const matching = listOf(place, number).filter((each) => Number.isNaN(since) || Date.parse(each.updated_at) >= since);
    return Response.json(matching.slice(from, from + size));
  }

  function pullRequests(request: Request, url: URL, body: string, place: string): Response {
    const owner = place.split("/")[0] ?? "";
    if (request.method === "GET") {
      const head = url.searchParams.get("head");
      const state = url.searchParams.get("state") ?? "open";
      const matching = pullsOf(place).filter(
        (pull) => (head === null || pull.head.label === head) && (state === "all" || pull.state === state),
      );
      return Response.json(matching.slice(0, Number(url.searchParams.get("per_page") ?? 30)));
    }
    const {
      title,
      head,
      base,
      body: text = "",
      draft = false,
    } = JSON.parse(body) as Record<"title" | "head" | "base" | "body", string> & { draft?: boolean };
    if (!title || !head || !base) return problem(422, "Validation Failed");
    const label = head.includes(":") ? head : `${owner}:${head}`;
    if (pullsOf(place).some((pull) => pull.state === "open" && pull.head.label === label && pull.base.ref === base))
      return Response.json(
        {
          message: "Validation Failed",
          errors: [{ resource: "PullRequest", code: "custom", message: `A pull request already exists for ${label}.` }],
        },
        { status: 422 },
      );
    const number = 100 + pullsOf(place).length;
    const user = { login, type: "User" };
    const html_url = `https://github.com/${place}/pull/${number}`;
    const pull: GitHubPullRequest = {
      number,
      title,
      body: text,
      state: "open",
      draft,
      user,
      head: { ref: head, label },
      base: { ref: base },
      html_url,
    };
    pullsOf(place).push(pull);
    return Response.json(pull, { status: 201 });
  }

  function issueLabels(request: Request, body: string, place: string, number: string): Response {
    const known = labelsOf(place, number);
    if (request.method === "POST")
      for (const label of (JSON.parse(body) as { labels: string[] }).labels) if (!known.includes(label)) known.push(label);
    return Response.json(known.map((name) => ({ name })));
  }

  return { handle, permit, fault, comment, comments: listOf, pulls: pullsOf, requests };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

const problem = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ message, documentation_url: "https://docs.github.com/rest" }, { status, headers });

function textOf(body: string): string | null {
  try {
    const text = (JSON.parse(body) as { body?: unknown }).body;
    return typeof text === "string" && text.trim() !== "" ? text : null;
  } catch {
    return null;
  }
}

/** The answer of a fault that keeps the request from its effect; null where the effect still happens. */
async function misbehave(fault: GitHubFault, retryAfter: number): Promise<Response | null> {
  switch (fault) {
    case "drop":
    case "silent":
      return null;
    case "lost":
      throw new ConnectionBroken("the stand-in lost the connection");
    case "hang":
      await pause(hangMs);
      return problem(504, "hung");
    case "html":
      return new Response("<html><body>unicorn</body></html>", { headers: { "content-type": "text/html" } });
    case "redirect":
      return new Response(null, { status: 307, headers: { location: "https://elsewhere.invalid/" } });
    case "429":
      return problem(429, "Too many requests", { "retry-after": String(retryAfter) });
    case "secondary_limit":
      return problem(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.");
    case "primary_limit":
      return problem(403, "API rate limit exceeded", {
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": String(Math.ceil(Date.now() / 1000) + retryAfter),
      });
    default:
      return problem(Number(fault), `the stand-in answers ${fault}`);
  }
}

const trapped = gitHubServer();

/** The stand-in behind http://github.test of the workerd tests. A broken connection is an answer whose body breaks off. */
export async function handleGitHub(request: Request): Promise<Response> {
  try {
    return await trapped.handle(request);
  } catch (error) {
    if (!(error instanceof ConnectionBroken)) throw error;
    let sent = false;
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent) return controller.error(error);
        sent = true;
        controller.enqueue(new TextEncoder().encode('{"id": 1'));
      },
    });
    return new Response(broken, { status: 201 });
  }
}

export type GitHubServer = Omit<ReturnType<typeof gitHubServer>, "handle"> & { url: string; close(): Promise<void> };

/** The same stand-in as a real HTTP server on loopback, the value of GITHUB_API_URL. `login`: whose token it is. */
export async function startGitHubServer(options: { port?: number; login?: string } = {}): Promise<GitHubServer> {
  const { handle, ...standIn } = gitHubServer(options.login);
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const bodyless = incoming.method === "GET" || incoming.method === "HEAD";
      const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
        typeof value === "string" ? [[name, value]] : [],
      );
      const request = new Request(`http://127.0.0.1${incoming.url ?? "/"}`, {
        method: incoming.method ?? "GET",
        headers,
        body: bodyless ? null : Buffer.concat(chunks),
      });
      const response = await handle(request);
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.end(Buffer.from(await response.arrayBuffer()));
    })().catch(() => incoming.socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  return {
    ...standIn,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
