import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeId } from "../../src/core/ids.ts";
import { addMarker, readMarker } from "../../src/core/marker.ts";
import type { InboxItem } from "../../src/core/router.ts";
import { decideStep, type TurnView } from "../../src/core/router-decide.ts";
import { planReport, relayUndecided } from "../../src/core/router-reports.ts";
import { replyText, reportText } from "../../src/core/structured.ts";
import { member, queuedReport, queuedTrigger, reportOf, taskOf } from "../support/router-fixtures.ts";

const issue = queuedTrigger({ name: "issue", by: member, thread: "12" });
const root = queuedTrigger({ name: "root", by: member });
const onIssue = taskOf("mend", { source: "github", place: "acme/app", threadId: issue.threadId });
const elsewhere = taskOf("secret plan");

/** What a step says, in the order of its decisions. */
function said(items: InboxItem[], calls: [string, object][], parts: Partial<TurnView> = {}): string[] {
  const view: TurnView = {
    turn: 7,
    step: 1,
    lane: "team",
    capped: false,
    nowMs: 1_000,
    agentName: "Switchyard",
    items: new Map(items.map((item) => [item.id, item])),
    progress: new Map(),
    tasks: new Map([onIssue, elsewhere].map((task) => [task.id, task])),
    machines: [],
    policies: [],
    ...parts,
  };
  const outcome = decideStep(
    view,
    calls.map(([tool, input], i) => ({ callId: `c${i}`, tool, input })),
  );
  expect(outcome.refused).toEqual([]);
  return outcome.decisions.flatMap(({ effects }) => effects.flatMap((effect) => (effect.kind === "post" ? [effect.input.text] : [])));
}
const reply = (item: InboxItem, text = "Yes."): [string, object] => ["reply", { settles: [item.id], text }];

describe("[RD13] what the router says on GitHub", () => {
  test("is the answer alone where there is nothing to add, and in a conversation always", () => {
    expect(said([issue], [reply(issue)])).toEqual(["Yes."]);
    const dispatch: [string, object] = ["dispatch", { settles: [root.id], title: "Look", goal: "Look.", acknowledge: "On it." }];
    expect(said([root], [dispatch])).toEqual(["On it."]);
  });

  test("begins with the answer, and then says what the same step did about it", () => {
    const dispatch: [string, object] = ["dispatch", { settles: [issue.id], title: "Oil the gate", goal: "Oil it." }];
    const started = "### What was done\n\n- Started the task “Oil the gate” (`tsk_";
    expect(said([issue], [[dispatch[0], { ...dispatch[1], acknowledge: "On it." }]])[0]).toContain(`On it.\n\n${started}`);
    expect(said([issue], [dispatch, reply(issue)])[0]).toContain(`Yes.\n\n${started}`);
    // Said once, by whichever of the two is there.
    const both = said([issue], [[dispatch[0], { ...dispatch[1], acknowledge: "On it." }], reply(issue)]);
    expect(both.map((text) => text.includes("What was done"))).toEqual([true, false]);
    expect(said([issue], [["ask_human", { settles: [issue.id], question: "May we?" }], reply(issue)])).toEqual([
      "Yes.\n\n### What was done\n\n- Asked the team's operators.",
    ]);
  });

  test("names a task of another conversation by its id alone", () => {
    const cancel: [string, object] = ["cancel", { settles: [issue.id], task: elsewhere.id, reason: "asked to" }];
    expect(said([issue], [cancel, reply(issue)])).toEqual([`Yes.\n\n### What was done\n\n- Asked the task \`${elsewhere.id}\` to stop.`]);
    expect(said([issue], [cancel, reply(issue)]).join()).not.toContain("secret plan");
  });

  test("says which messages it answers when they are several", () => {
    const second = queuedTrigger({ name: "issue 2", by: member, thread: "12" }, 2);
    const withUrl = [issue, second].map((item, i) => ({
      ...item,
      trigger: { ...item.trigger, facts: { url: `https://github.test/acme/app/issues/12#issuecomment-${i}` } },
    }));
    expect(said(withUrl, [["reply", { settles: withUrl.map(({ id }) => id), text: "Both." }]])[0]).toBe(
      "Both.\n\n### Links\n\n- In answer to https://github.test/acme/app/issues/12#issuecomment-0\n- In answer to https://github.test/acme/app/issues/12#issuecomment-1",
    );
  });

  test("asks for an answer where a task waits for one, whoever passes its question on", () => {
    const asked = `\n\n### What is asked of you\n\n- Answer in this thread: the task \`${onIssue.id}\` waits for it, and goes on with what you write.`;
    const item = queuedReport(reportOf({ task: onIssue, kind: "question", text: "Which oil?", status: "waiting" }));
    expect(said([item], [["relay", { settles: [item.id], report: item.id }]])).toEqual([`Which oil?${asked}`]);
    expect(said([item], [reply(item, "Which oil is it?")])).toEqual([`Which oil is it?${asked}`]);
    const [post] = relayUndecided(item, onIssue, 1).effects;
    expect(post?.kind === "post" && post.input.text.endsWith(asked)).toBe(true);
    const unknown = queuedReport({ ...item.report, taskId: makeId("tsk", "unknown") });
    const [plain] = relayUndecided(unknown, null, 1).effects;
    expect(plain?.kind === "post" && plain.input.text.endsWith("Which oil?")).toBe(true);
  });

  test("keeps what ran and where to look when a report is said in other words, and adds nothing to one that is passed on", () => {
    const text = reportText("It is oiled. Much was done.", {
      checks: ["npm test · exit 0"],
      links: ["Branch switchyard/tsk_a at 0123456789"],
    });
    const item = queuedReport(reportOf({ task: onIssue, text, confidence: 0.3 }));
    const sections = "\n\n### Checks\n\n- `npm test · exit 0`\n\n### Links\n\n- Branch switchyard/tsk_a at 0123456789";
    expect(said([item], [reply(item, "Oiled.")])).toEqual([`Oiled.${sections}`]);
    expect(said([item], [["relay", { settles: [item.id], report: item.id }]])).toEqual([text]);
    const { decision } = planReport(reportOf({ task: onIssue, text, confidence: 0.9 }), onIssue, [], 1);
    const [post] = decision?.effects ?? [];
    expect(post?.kind === "post" && post.input.text).toBe(text);
  });
});

const parts = fc.record({
  done: fc.array(fc.string({ unit: "grapheme", minLength: 1 }), { maxLength: 2 }),
  asked: fc.array(fc.constant("Answer here."), { maxLength: 1 }),
  links: fc.array(fc.webUrl(), { maxLength: 2 }),
});
const words = fc.array(fc.oneof(fc.constantFrom("```ts", "~~~~", "```", "<!--", "-->", "word", ""), fc.string({ unit: "grapheme" })), {
  maxLength: 12,
});

test("[RD13] the form holds the words, is the same twice, hides nothing in a code block or a comment, and leaves the marker readable", () => {
  fc.assert(
    fc.property(words, parts, (lines, given) => {
      const text = lines.join("\n");
      const once = replyText(text, given);
      expect(once.startsWith(text.trimEnd())).toBe(true);
      expect(replyText(once, given)).toBe(once);
      expect(once).not.toMatch(/### [^\n]+\n*$/);
      const body = addMarker("s", "out_a-b", once);
      expect(readMarker("s", body)?.outboundId).toBe("out_a-b");
    }),
    { numRuns: 500 },
  );
  for (const open of ["see\n```ts\nconst a = 1;", "see\n~~~~\n```", "see <!-- not closed", "```\na <!-- b\n```\nand <!-- c"]) {
    const formed = replyText(open, { done: ["Done."], asked: [], links: [] });
    const rest = formed.slice(open.length, formed.indexOf("### What was done")).trim();
    expect(["```", "~~~~", "-->"]).toContain(rest);
  }
  for (const shut of ["see\n```\na <!-- b\n```\nfine", "a <!-- b --> c", "> ```\n> x"])
    expect(replyText(shut, { done: ["Done."], asked: [], links: [] })).toBe(`${shut}\n\n### What was done\n\n- Done.`);
});

test("[O9] a report whose words leave a code block open does not hide what ran", () => {
  expect(reportText("see\n```\nx", { checks: ["npm test · exit 1"], links: [] })).toBe(
    "see\n```\nx\n```\n\n### Checks\n\n- `npm test · exit 1`",
  );
});
