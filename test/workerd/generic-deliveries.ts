// Deliveries of the generic webhook, signed as a bridge would sign them.
import { exports } from "cloudflare:workers";
import type { SignedSource } from "../../src/channels/generic/parse.ts";
import { signHeaders } from "../../src/channels/generic/sign.ts";
import type { Answer } from "./github-deliveries.ts";

const worker = (exports as unknown as { default: { fetch(request: Request): Promise<Response> } }).default;

/** `source`: the door, `generic` when absent. */
export type Sent = {
  id: string;
  source?: SignedSource;
  place?: string;
  atMs?: number;
  headers?: Record<string, string | null>;
  changed?: string;
};

/** Sends one delivery; a header that is null is left out, `changed` replaces the body after it was signed. */
export async function deliverGeneric(payload: unknown, sent: Sent): Promise<{ status: number; answer: Answer; ms: number }> {
  const body = typeof payload === "string" ? payload : JSON.stringify(payload);
  const signed = await signHeaders(
    "generic-test-secret",
    sent.id,
    Uint8Array.from(new TextEncoder().encode(body)),
    sent.atMs ?? Date.now(),
  );
  const headers = Object.entries({ "content-type": "application/json", ...signed, ...sent.headers });
  const request = new Request(`https://switchyard.test/hooks/${sent.source ?? "generic"}/${sent.place ?? "chat"}`, {
    method: "POST",
    headers: headers.filter((header): header is [string, string] => header[1] !== null),
    body: sent.changed ?? body,
  });
  const startMs = Date.now();
  const response = await worker.fetch(request);
  return { status: response.status, answer: await response.json(), ms: Date.now() - startMs };
}
