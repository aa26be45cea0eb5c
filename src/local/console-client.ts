// The console's API with the operator token: what the local start asks of the Worker that it just started.

import type { Replayed } from "../protocol/rpc.ts";

export type TimelineEntry = { atMs: number; lane: string; object: string; event: Record<string, unknown> & { kind: string } };

export class ConsoleClient {
  readonly #origin: string;
  readonly #token: string;

  constructor(origin: string, token: string) {
    this.#origin = origin;
    this.#token = token;
  }

  /** A fresh personal link for the owner of this deployment. */
  async ownerLink(): Promise<string> {
    const { link } = await this.#call<{ link: string }>("POST", "people", { name: "Owner", role: "owner", personId: "prs_owner" });
    return link;
  }

  async enrolmentCode(): Promise<string> {
    return (await this.#call<{ code: string }>("POST", "endpoints/enrolment", {})).code;
  }

  async timeline(taskId: string): Promise<TimelineEntry[]> {
    return (await this.#call<{ timeline: TimelineEntry[] }>("GET", `tasks/${taskId}`)).timeline;
  }

  /** What a task or the router saw at a step. */
  replay(of: string, step: number): Promise<Replayed> {
    return this.#call<Replayed>("GET", `replay/${encodeURIComponent(of)}?step=${step}`);
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.#origin}/api/console/${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      throw new Error(`Nothing answers at ${this.#origin}. Does it run there?`, { cause: error });
    });
    const text = await response.text();
    if (!response.ok)
      throw new Error(refusalIn(text) ?? `${method} /api/console/${path} answered ${response.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text) as T;
  }
}

/** The sentence of a refusal of ours; null when somebody else answered. */
function refusalIn(text: string): string | null {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : null;
  } catch {
    return null;
  }
}
