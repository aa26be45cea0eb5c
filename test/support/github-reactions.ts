// The stand-in's part for reactions to comments, as GitHub's REST API lists them: oldest first, in pages, with an ETag for each answer.
// `POST /control/reactions {place, comment, reactions: [{login, content, at?, type?}]}` adds some (`login` null: an account that is gone) ·
// `POST /control/unreact {place, comment}` takes all of a comment away
import { createHash } from "node:crypto";

type Reaction = {
  id: number;
  node_id: string;
  user: { login: string; id: number; type: string } | null;
  content: string;
  created_at: string;
};
type Given = { login: string | null; content: string; at?: string; type?: string };

const pageMax = 100;
const contents = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];

/** `exists`: whether a comment of this kind and number is there. */
export function githubReactions(exists: (place: string, kind: "issues" | "pulls", comment: number) => boolean) {
  const reactions = new Map<string, Reaction[]>();
  let lastId = 500;

  const listOf = (place: string, comment: number): Reaction[] => {
    const key = `${place}#${comment}`.toLowerCase();
    const known = reactions.get(key) ?? [];
    reactions.set(key, known);
    return known;
  };

  const react = (place: string, comment: number, given: readonly Given[]): void => {
    for (const { login, content, at = new Date().toISOString(), type = "User" } of given) {
      if (!contents.includes(content)) throw new Error(`GitHub has no reaction ${content}`);
      const id = ++lastId;
      const user = login === null ? null : { login, id: id + 1_000, type };
      listOf(place, comment).push({ id, node_id: `R_${id}`, user, content, created_at: at.replace(/\.\d+Z$/, "Z") });
    }
  };

  async function control(url: URL, request: Request): Promise<Response | null> {
    switch (`${request.method} ${url.pathname}`) {
      case "POST /control/reactions": {
        const input = (await request.json()) as { place: string; comment: number; reactions: Given[] };
        react(input.place, input.comment, input.reactions);
        return Response.json({ ok: true });
      }
      case "POST /control/unreact": {
        const input = (await request.json()) as { place: string; comment: number };
        listOf(input.place, input.comment).length = 0;
        return Response.json({ ok: true });
      }
      default:
        return null;
    }
  }

  /** The answer to a request of the API, or null where it is somebody else's. */
  function answer(request: Request, url: URL): Response | null {
    const [, place, kind, comment] = /^\/repos\/([^/]+\/[^/]+)\/(issues|pulls)\/comments\/(\d+)\/reactions$/.exec(url.pathname) ?? [];
    if (place === undefined || request.method !== "GET") return null;
    if (!exists(place, kind === "pulls" ? "pulls" : "issues", Number(comment)))
      return Response.json({ message: "Not Found" }, { status: 404 });
    const all = listOf(place, Number(comment));
    const size = Math.min(pageMax, Number(url.searchParams.get("per_page") ?? 30));
    const page = Number(url.searchParams.get("page") ?? 1);
    const body = JSON.stringify(all.slice((page - 1) * size, page * size));
    const etag = `W/"${createHash("sha256").update(`${url.pathname}${url.search}${body}`).digest("hex")}"`;
    if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers: { etag } });
    const last = Math.max(1, Math.ceil(all.length / size));
    const to = (n: number, rel: string): string => `<https://github.test${url.pathname}?per_page=${size}&page=${n}>; rel="${rel}"`;
    const link = page < last ? { link: `${to(page + 1, "next")}, ${to(last, "last")}` } : {};
    return new Response(body, { headers: { "content-type": "application/json; charset=utf-8", etag, ...link } });
  }

  return { control, answer };
}
