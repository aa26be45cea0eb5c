// The shipped rules as the experiment's group chat meets them.
import { defaultRules, judge } from "../../../src/core/gate.ts";
import { isSmallTalk } from "../../../src/core/small-talk.ts";

/** What the shipped rules let through to the router, of talk in the room and of words in the thread of a task that has ended. */
export function shippedGate(text: string, kind: "talk" | "ci" | "follow_up"): boolean {
  const principal = { role: "member", id: "U1", name: "" } as const;
  const facts = isSmallTalk(text) ? { facts: { words: "talk" } } : {};
  const where = { source: "generic", place: "chat", threadId: "", kind: kind === "ci" ? "check" : "message" };
  const { outcome } = judge(defaultRules, { ...where, principal, addressed: false, text, ...facts });
  return outcome === "candidate" || outcome === "request";
}
