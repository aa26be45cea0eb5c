// What both benches of a turn's overhead share: CPU read at each request of the fake model, blocks A B B A, and the law of a turn.

import type { SimCall } from "./lib/model-server.ts";
import { median } from "./lib/statistics.ts";
import { type StreamModel, type StreamRequest, startStreamModel } from "./lib/stream-model.ts";
import type { BareTurns } from "./worker/bare-turns.ts";

/** One conversation of the fake model: its answers, and what its caller's runtime had used when each request arrived. */
type Conversation = {
  pieces: number;
  calls: (n: number, request: StreamRequest) => SimCall[];
  cpuMs: () => number;
  marks: number[];
  until: number;
  reached: () => void;
};

/** The fake model of ours and of the bare object. */
export class Turns {
  readonly model: StreamModel;
  readonly #running: Map<string, Conversation>;
  /** What ours sends, for the bare object to send the same. */
  readonly #sent: Map<string, StreamRequest>;

  private constructor(model: StreamModel, running: Map<string, Conversation>, sent: Map<string, StreamRequest>) {
    this.model = model;
    this.#running = running;
    this.#sent = sent;
  }

  static async start(): Promise<Turns> {
    const running = new Map<string, Conversation>();
    const sent = new Map<string, StreamRequest>();
    const model = await startStreamModel({
      answer: (request) => {
        const conversation = running.get(request.model);
        if (conversation === undefined) return { pieces: 1, calls: [] };
        sent.set(request.model, request);
        const n = conversation.marks.push(conversation.cpuMs());
        if (n === conversation.until) conversation.reached();
        return { pieces: conversation.pieces, calls: conversation.calls(n, request) };
      },
    });
    return new Turns(model, running, sent);
  }

  /** Takes the requests of one model name from now on; resolves with the marks when `until` of them have come. */
  take(name: string, conversation: Omit<Conversation, "marks" | "reached">): Promise<number[]> {
    return new Promise((resolve) => {
      const marks: number[] = [];
      this.#running.set(name, { ...conversation, marks, reached: () => resolve(marks) });
    });
  }

  /** A turn of the bare object with the prompt, the tools and the words of the last request under this name. */
  likeLast(name: string): Pick<BareTurns, "system" | "tools" | "text"> {
    const request = this.#sent.get(name);
    if (request === undefined) throw new Error(`${name} was asked nothing.`);
    const [system, ...others] = request.messages;
    const tools = (request.tools ?? []).map(({ function: described }) => {
      const { name: tool, description, parameters } = described as { name: string; description: string; parameters: object };
      return { name: tool, description, schema: parameters };
    });
    return { system: system?.content ?? "", tools, text: others.findLast(({ role }) => role === "user")?.content ?? "" };
  }
}

/** CPU of a turn between two requests, the first of a conversation left out: it has the start in it. */
export const perTurn = (marks: readonly number[], from = 1, to = marks.length - 1): number =>
  ((marks[to] ?? Number.NaN) - (marks[from] ?? Number.NaN)) / (to - from);

const ends = 10;

/**
 * How much more a turn costs in the last ten than in the first ten, by the middle one of each: about every thirty turns the runtime collects
 * its garbage, at the price of four of them, and in which ten that falls is chance.
 */
export function growth(marks: readonly number[]): number {
  const each = marks.slice(1).map((mark, i) => mark - (marks[i] ?? Number.NaN));
  // The first turn has the start in it.
  return median(each.slice(-ends)) / median(each.slice(1, 1 + ends));
}

export type Side = (pieces: number, turns: number) => Promise<number[]>;

type PairFigures = { ours: number; bare: number };

/** One pair of blocks in either order. */
export async function pair(oursFirst: boolean, ours: () => Promise<number>, bare: () => Promise<number>): Promise<PairFigures> {
  if (oursFirst) return { ours: await ours(), bare: await bare() };
  const second = await bare();
  return { ours: await ours(), bare: second };
}
