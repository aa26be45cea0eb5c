// How a task's state looks: a word, a tone and a shape, so that colour never stands alone.
import type { TaskCard } from "../../protocol/task.ts";

export type Tone = "run" | "wait" | "good" | "bad" | "quiet";
export type Shape = "ring" | "play" | "diamond" | "half" | "pause" | "check" | "cross" | "square" | "dashed";
export type StatusView = { word: string; tone: Tone; shape: Shape; open: boolean; forYou: boolean };

type StatusFields = Pick<TaskCard, "status" | "waitingFor"> & { line?: string };

/** A task may do what was asked, and what it ran still fail: `Exit 128: …`, `… (exit 1)`. */
const badExit = (line = ""): string | undefined => /^exit ([1-9]\d*)\b/i.exec(line)?.[1] ?? /\(exit ([1-9]\d*)[,)]/i.exec(line)?.[1];

/** The word, tone and shape of a task's state. */
export function statusView(card: StatusFields): StatusView {
  switch (card.status) {
    case "queued":
      return { word: "queued", tone: "quiet", shape: "ring", open: true, forYou: false };
    case "running":
      return { word: "running", tone: "run", shape: "play", open: true, forYou: false };
    case "waiting":
      return card.waitingFor === "you" || card.waitingFor === "release"
        ? { word: "waiting for you", tone: "wait", shape: "diamond", open: true, forYou: true }
        : {
            word: card.waitingFor === undefined || card.waitingFor === "event" ? "waiting" : `waiting for ${card.waitingFor}`,
            tone: "wait",
            shape: "half",
            open: true,
            forYou: false,
          };
    case "paused":
      return { word: "paused", tone: "wait", shape: "pause", open: true, forYou: true };
    case "done": {
      const exit = badExit(card.line);
      if (exit !== undefined) {
        // Tests that fail are what a run of tests is for; anything else that fails says how in its word.
        const word = /\d failed\b/.test(card.line ?? "") ? "done" : `done, exit ${exit}`;
        return { word, tone: "quiet", shape: "check", open: false, forYou: false };
      }
      return { word: "done", tone: "good", shape: "check", open: false, forYou: false };
    }
    case "failed":
      return { word: "failed", tone: "bad", shape: "cross", open: false, forYou: false };
    case "cancelling":
      return { word: "stopping", tone: "quiet", shape: "dashed", open: true, forYou: false };
    case "cancelled":
      return { word: "stopped", tone: "quiet", shape: "square", open: false, forYou: false };
  }
}

/** Whether a message to the task meets work that is under way. */
export const isBusy = (card: StatusFields): boolean => card.status === "running" || (card.status === "waiting" && !statusView(card).forYou);

/** `again`: say in its thread that it is to be tried again; `reject`, of a failed one: leave it. */
export type CardAction = "stop" | "continue" | "again" | "accept" | "reject";

/** What a person may do with a task now. */
export function actionsOf(card: StatusFields): readonly CardAction[] {
  switch (card.status) {
    case "queued":
    case "running":
    case "waiting":
      return ["stop"];
    case "paused":
      return ["continue", "stop"];
    case "done":
      return ["accept", "reject"];
    case "failed":
      return ["again", "reject"];
    case "cancelling":
    case "cancelled":
      return [];
  }
}
