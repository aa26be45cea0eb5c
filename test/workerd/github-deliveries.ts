// Deliveries as GitHub makes them, for tests of the door.

import { exports } from "cloudflare:workers";
import { sign } from "@octokit/webhooks-methods";

type Worker = { fetch(request: Request): Promise<Response> };
export const worker = (exports as unknown as { default: Worker }).default;

const secret = "s3cret";
let count = 0;
/** Unique across the tests of a file. */
export const newDeliveryId = (): string => `delivery-${Date.now()}-${++count}`;

type Sent = { deliveryId?: string; headers?: Record<string, string | null>; path?: string };

/** The request of a delivery; a header that is null is left out. The signature is right unless the headers say otherwise. */
export async function deliveryOf(event: string, payload: unknown, sent: Sent = {}): Promise<Request> {
  const body = typeof payload === "string" ? payload : JSON.stringify(payload);
  const headers: Record<string, string | null> = {
    "content-type": "application/json",
    "user-agent": "GitHub-Hookshot/abc1234",
    "x-github-event": event,
    "x-github-delivery": sent.deliveryId ?? newDeliveryId(),
    "x-hub-signature-256": await sign(secret, body),
    ...sent.headers,
  };
  const kept = Object.entries(headers).filter((header): header is [string, string] => header[1] !== null);
  return new Request(`https://switchyard.test${sent.path ?? "/hooks/github"}`, { method: "POST", headers: kept, body });
}

export type Answer = {
  triggers?: { id: string; outcome: string; verdict: string; reason: string }[];
  ignored?: string;
  error?: string;
  message?: string;
};

export async function deliver(event: string, payload: unknown, sent: Sent = {}): Promise<{ status: number; answer: Answer }> {
  const response = await worker.fetch(await deliveryOf(event, payload, sent));
  return { status: response.status, answer: await response.json() };
}

export const control = (path: string, body?: unknown): Promise<Response> =>
  fetch(`http://github.test/control/${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });

export const person = (login: string, type = "User") => ({ login, id: 1, type });

/** A new comment on issue 12 of a repository. */
export const commentOn = (
  place: string,
  comment: { login?: string; body: string; association?: string; id?: number },
  issue: { login?: string; association?: string; title?: string } = {},
) => ({
  action: "created",
  repository: { full_name: place, id: 7 },
  sender: person(comment.login ?? "dev"),
  issue: {
    number: 12,
    id: 1012,
    title: issue.title ?? "The build is red",
    body: "It fails on main.",
    html_url: `https://github.com/${place}/issues/12`,
    user: person(issue.login ?? "reporter"),
    author_association: issue.association ?? "NONE",
  },
  comment: {
    id: comment.id ?? 55,
    body: comment.body,
    html_url: `https://github.com/${place}/issues/12#issuecomment-55`,
    user: person(comment.login ?? "dev"),
    author_association: comment.association ?? "OWNER",
  },
});
