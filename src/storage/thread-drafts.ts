// [D2] Replies that are being written, as the pages of a root may see them. They live in memory only; a deadline for each sees to it that a
// draft whose writer died is called interrupted, also when this object died with it.
import type { Deadline } from "../core/alarms.ts";
import { fitManner } from "../core/manners.ts";
import { webSource } from "../core/thread.ts";
import { limits } from "../protocol/limits.ts";
import type { DraftFrame } from "../protocol/widget-frames.ts";
import type { AlarmMux } from "./alarm-mux.ts";
import type { ThreadRoom } from "./thread-room.ts";

type Live = { frame: DraftFrame; heardMs: number };

export class ThreadDrafts {
  readonly #alarms: AlarmMux<"draft">;
  readonly #broadcast: (frame: DraftFrame) => void;
  readonly #live = new Map<string, Live>();

  constructor(alarms: AlarmMux<"draft">, broadcast: (frame: DraftFrame) => void) {
    this.#alarms = alarms;
    this.#broadcast = broadcast;
  }

  /** The newest of each draft, for a page that just came. */
  get current(): DraftFrame[] {
    return [...this.#live.values()].map(({ frame }) => frame);
  }

  /** Shows a draft, as short as its row will be; an older one than is shown changes nothing. */
  take(draft: Omit<DraftFrame, "t">, nowMs: number): void {
    const frame: DraftFrame = { t: "draft", ...draft, text: fitManner(draft.text, "instant") };
    const known = this.#live.get(frame.draftId);
    if (known && known.frame.rev >= frame.rev) return;
    if (frame.state === "writing") {
      this.#live.set(frame.draftId, { frame, heardMs: nowMs });
      // Once a draft: the deadline looks at what was heard since, so that words cost no writes.
      const { draftId: key, threadId } = frame;
      if (!known) this.#alarms.set("draft", nowMs + limits.draftSilentMs, { key, payload: JSON.stringify([threadId, key]) });
    } else this.end(frame.draftId);
    this.#broadcast(frame);
  }

  /** Its row is there, or it will never be. */
  end(draftId: string): void {
    if (this.#live.delete(draftId)) this.#alarms.clear("draft", draftId);
  }

  /** The `draft` deadline. A draft that nobody here knows was shown by an instance that is gone. */
  readonly onDeadline = async ({ payload }: Pick<Deadline, "payload">): Promise<number | undefined> => {
    const [threadId = "", draftId = ""] = JSON.parse(payload) as string[];
    const nowMs = Date.now();
    const known = this.#live.get(draftId);
    if (known && nowMs < known.heardMs + limits.draftSilentMs) return known.heardMs + limits.draftSilentMs;
    this.#live.delete(draftId);
    const rev = Math.max(nowMs, (known?.frame.rev ?? 0) + 1);
    this.#broadcast({ t: "draft", threadId, draftId, rev, text: known?.frame.text ?? "", state: "interrupted" });
    return undefined;
  };
}

/** Where a draft is shown: at this root, at the root of this topic, or nowhere. `said`: its row is there already. */
export function draftPlace(
  room: ThreadRoom,
  ownId: string,
  draft: Pick<DraftFrame, "threadId" | "draftId">,
): "here" | "said" | { root: string } | null {
  const about = room.store.about();
  if (about?.source !== webSource) return null;
  if (draft.threadId !== ownId) return room.store.page.topic(draft.threadId) ? "here" : null;
  if (room.store.log.byKey(draft.draftId)) return "said";
  return about.rootThreadId === undefined ? "here" : { root: about.rootThreadId };
}
