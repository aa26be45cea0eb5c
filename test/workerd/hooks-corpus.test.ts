// Every payload that GitHub publishes as an example, signed and delivered through the real door, twice.
import examples from "@octokit/webhooks-examples";
import { describe, expect, test } from "vitest";
import { type Answer, deliver, newDeliveryId } from "./github-deliveries.ts";

const used = [
  "issues",
  "issue_comment",
  "pull_request",
  "pull_request_review",
  "pull_request_review_comment",
  "check_run",
  "check_suite",
  "workflow_run",
  "push",
];

/** `accepted`, `ignored`, or what else the answer is: each is said with a reason. */
function endOf(status: number, answer: Answer): string {
  if (status !== 202) return `status ${status}: ${answer.message}`;
  if (answer.ignored !== undefined) return answer.ignored.length > 10 ? "ignored" : "ignored without a reason";
  if ("ping" in answer) return "ping";
  const triggers = answer.triggers ?? [];
  if (triggers.length === 0 || triggers.some(({ reason }) => reason.length < 10)) return "without a reason";
  return triggers.map(({ outcome }) => outcome).join("+");
}

describe.each(examples.map(({ name, examples: payloads }) => ({ name, payloads: payloads as unknown[] })))(
  "the examples of $name",
  ({ name, payloads }) => {
    test("[R3] [R8] each ends accepted, ignored or stale with a reason, and a second delivery changes nothing", async () => {
      for (const payload of payloads) {
        const deliveryId = newDeliveryId();
        const first = await deliver(name, payload, { deliveryId });
        const firstEnd = endOf(first.status, first.answer);
        const again = await deliver(name, payload, { deliveryId });
        const againEnd = endOf(again.status, again.answer);
        if (name === "ping") expect([firstEnd, againEnd]).toEqual(["ping", "ping"]);
        else if (!used.includes(name)) expect([firstEnd, againEnd]).toEqual(["ignored", "ignored"]);
        else {
          // [T20] The examples are about the same comments, deletions before originals.
          expect(firstEnd).toMatch(/^(ignored|accepted|stale)(\+(ignored|accepted|stale))*$/);
          expect(againEnd).toBe(firstEnd.replaceAll(/accepted|stale/g, "duplicate"));
        }
      }
    });
  },
);

/** The same payload as a comment of its own, with another word of GitHub about its author, and another author, so that nothing is known of them. */
function authoredBy(payload: unknown, id: number, login: string, association: string): unknown {
  return JSON.parse(JSON.stringify(payload), (key, value: unknown) => {
    if (key === "author_association") return association;
    if (key === "comment" && typeof value === "object" && value !== null) return { ...value, id };
    if ((key === "user" || key === "sender") && typeof value === "object" && value !== null) return { ...value, login, type: "User" };
    return value;
  });
}

const associations = ["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "MANNEQUIN", "NONE"];
test.each(associations.map((association, n) => [association, n] as const))(
  "a comment of somebody with the association %s is accepted",
  async (association, n) => {
    const comment = examples.find(({ name }) => name === "issue_comment")?.examples[0];
    const payload = authoredBy(comment, 900_001 + n, `corpus-${association.toLowerCase()}`, association);
    const { status, answer } = await deliver("issue_comment", payload);
    expect(status).toBe(202);
    expect(answer.triggers).toMatchObject([{ outcome: "accepted", verdict: "candidate" }]);
  },
);
