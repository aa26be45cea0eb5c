// Shows replies of a turn while its model writes them: at most so often, the newest words only, one call out at a time.
import { type DraftView, draftOf, mayMove, type WrittenCall } from "../src/core/router-drafts.ts";
import type { Env } from "../src/env.ts";
import { logFault } from "../src/log-fault.ts";
import { limits } from "../src/protocol/limits.ts";
import type { ModelPiece } from "../src/protocol/model.ts";
import type { DraftFrame } from "../src/protocol/widget-frames.ts";

type Shown = Pick<DraftFrame, "threadId" | "draftId" | "text">;

export class RouterDrafts {
  readonly #threads: Env["THREAD"];
  readonly #shown = new Map<string, Shown>();
  /** Threads where nobody could see it, or that failed: it is best effort, and ends there. */
  readonly #closed = new Set<string>();
  #view: DraftView | null = null;
  #calls: WrittenCall[] = [];
  /** There are words that were not sent. */
  #fresh = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #sending: Promise<void> | null = null;
  #sentMs = 0;
  #rev = 0;

  constructor(threads: Env["THREAD"]) {
    this.#threads = threads;
  }

  /** A new answer of the model begins; gives the one who listens to it. */
  begin(view: DraftView): (piece: ModelPiece) => void {
    this.#calls = [];
    this.#view = view;
    this.#arm();
    return (piece) => {
      if (piece.kind !== "call" || this.#view !== view) return;
      const call = this.#calls[piece.index];
      if (call) call.json += piece.delta;
      else {
        this.#calls[piece.index] = { tool: piece.tool, json: piece.delta };
        if (mayMove(piece.tool)) this.#takeBack("dropped");
      }
      if (piece.tool !== "reply" || this.#fresh) return;
      this.#fresh = true;
      this.#arm();
    };
  }

  /** Rows stand for these from here on. */
  replaced(outboundIds: readonly string[]): void {
    for (const id of outboundIds) this.#shown.delete(id);
  }

  /** The turn is over. What was shown and became no row is taken back, or called interrupted when it will be tried again. */
  close(state: "interrupted" | "dropped"): void {
    this.#view = null;
    this.#clear();
    this.#takeBack(state);
  }

  /** What is shown is shown no more: its place has become uncertain, or its turn is over. */
  #takeBack(state: "interrupted" | "dropped"): void {
    const left = [...this.#shown.values()];
    this.#shown.clear();
    void (this.#sending ?? Promise.resolve()).then(() => this.#sendAll(left, state));
  }

  #clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Words soon; without new ones a sign of life, or the page would take their writer for dead. */
  #arm(): void {
    if (this.#sending !== null || this.#view === null) return;
    this.#clear();
    if (!this.#fresh && this.#shown.size === 0) return;
    const dueMs = this.#sentMs + (this.#fresh ? limits.draftEveryMs : limits.draftBeatMs);
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, dueMs - Date.now()));
  }

  #tick(): void {
    this.#timer = null;
    if (this.#view === null) return;
    const draft = this.#fresh ? draftOf(this.#view, this.#calls) : null;
    this.#fresh = false;
    if (draft !== null) this.#shown.set(draft.draftId, draft);
    this.#sending = this.#sendAll(draft === null ? [...this.#shown.values()] : [draft], "writing").then(() => {
      this.#sentMs = Date.now();
      this.#sending = null;
      this.#arm();
    });
  }

  async #sendAll(drafts: readonly Shown[], state: DraftFrame["state"]): Promise<void> {
    for (const draft of drafts) {
      if (this.#closed.has(draft.threadId)) continue;
      this.#rev = Math.max(Date.now(), this.#rev + 1);
      try {
        const { taken } = await this.#threads.getByName(draft.threadId).draft({ ...draft, rev: this.#rev, state });
        if (!taken) this.#closed.add(draft.threadId);
      } catch (error) {
        this.#closed.add(draft.threadId);
        logFault("router.draft", error, { thread: draft.threadId });
      }
    }
  }
}
