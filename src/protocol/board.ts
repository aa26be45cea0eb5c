// The small live view that every console follows. A projection: it is the truth of nothing.
import type { TaskCard } from "./task.ts";

export type BoardTask = TaskCard & { source: string; place: string; askedBy: string };

export type BoardEndpoint = {
  endpointId: string;
  name: string;
  online: boolean;
  sinceMs: number;
  running: number;
  waiting: number;
  sandbox: string;
  revision: number;
};

export type BoardDecision = {
  decisionId: string;
  atMs: number;
  tool: string;
  reason: string;
  lane: string;
  by: "model" | "code";
  settles: string[];
  /** The router acted, and nobody had asked. */
  unasked?: true;
  taskId?: string;
  threadId?: string;
};

/** So begins the reason of a decision that code made in place of what the model called for. */
export const refusedByCode = "refused by code: ";

/** Something that a person of the team should look at: a question of the router, an offer that waits for a release, a refusal, a fault. */
export type BoardNotice = {
  id: string;
  atMs: number;
  kind: "question" | "offer" | "refusal" | "fault";
  text: string;
  threadId?: string;
  taskId?: string;
};

export type BoardState = {
  tasks: BoardTask[];
  endpoints: BoardEndpoint[];
  decisions: BoardDecision[];
  notices: BoardNotice[];
};

export type BoardChange =
  | { kind: "task"; task: BoardTask }
  | { kind: "endpoint"; endpoint: BoardEndpoint }
  | { kind: "endpoint_gone"; endpointId: string }
  | { kind: "decision"; decision: BoardDecision }
  | { kind: "notice"; notice: BoardNotice }
  | { kind: "notice_done"; id: string };
