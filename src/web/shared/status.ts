// How a task's state looks: a word, a tone and a shape, so that colour never stands alone.
import type { TaskCard } from "../../protocol/task.ts";

export type Tone = "run" | "wait" | "good" | "bad" | "quiet";
export type Shape = "ring" | "play" | "diamond" | "half" | "pause" | "check" | "cross" | "square" | "dashed";
export type StatusView = { word: string; tone: Tone; shape: Shape; open: boolean; forYou: boolean };

type StatusFields = Pick<TaskCard, "status" | "waitingFor">;

/** The word, tone and shape of a task's state. */
export function statusView(card: StatusFields): StatusView {
  switch (card.status) {
    case "queued":
      return { word: "queued", tone: "quiet", shape: "ring", open: true, forYou: false };
    case "running":
      return { word: "running", tone: "run", shape: "play", open: true, forYou: false };
    case "waiting":
      return card.waitingFor === "you"
        ? { word: "waiting for you", tone: "wait", shape: "diamond", open: true, forYou: true }
        : { word: `waiting for ${card.waitingFor ?? "an event"}`, tone: "wait", shape: "half", open: true, forYou: false };
    case "paused":
      return { word: "paused", tone: "wait", shape: "pause", open: true, forYou: true };
    case "done":
      return { word: "done", tone: "good", shape: "check", open: false, forYou: false };
    case "failed":
      return { word: "failed", tone: "bad", shape: "cross", open: false, forYou: false };
    case "cancelling":
      return { word: "stopping", tone: "quiet", shape: "dashed", open: true, forYou: false };
    case "cancelled":
      return { word: "stopped", tone: "quiet", shape: "square", open: false, forYou: false };
  }
}

/** Whether a message to the task meets work that is under way. */
export const isBusy = (card: StatusFields): boolean =>
  card.status === "running" || (card.status === "waiting" && card.waitingFor !== "you");

/** What a person may do with a task now. */
export function actionsOf(card: StatusFields): readonly ("stop" | "continue" | "accept" | "reject")[] {
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
    case "cancelling":
    case "cancelled":
      return [];
  }
}
