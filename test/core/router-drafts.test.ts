import { describe, expect, test } from "vitest";
import { decideStep, type ItemProgress } from "../../src/core/router-decide.ts";
import { type DraftView, draftOf } from "../../src/core/router-drafts.ts";
import { routerTools } from "../../src/protocol/router-tools.ts";
import { guest, member, queuedReport, queuedTrigger, reportOf } from "../support/router-fixtures.ts";

const asked = queuedTrigger({ name: "a", by: member });
const visitor = queuedTrigger({ name: "v", by: guest });
const issue = queuedTrigger({ name: "i", by: member, thread: "one" });
const other = queuedTrigger({ name: "b", by: member, thread: "two" });
const bridged = { ...other, trigger: { ...other.trigger, source: "chat", kind: "message" } };
const report = queuedReport(reportOf({}));
const view = (progress: [string, ItemProgress][] = []): DraftView => ({
  turn: 7,
  step: 1,
  names: new Map([["7.1", asked.id]]),
  items: new Map([asked, visitor, issue, bridged, report].map((item) => [item.id, item])),
  progress: new Map(progress),
});
const reply = (input: object) => ({ tool: "reply", json: JSON.stringify(input) });

describe("[D1] a reply while it is written", () => {
  test("[RI10] names whom it answers by a short name as well", () => {
    const named = draftOf(view(), [reply({ settles: ["7.1"], text: "On it." })]);
    expect(named).toEqual(draftOf(view(), [reply({ settles: [asked.id], text: "On it." })]));
    expect(named).toMatchObject({ threadId: asked.threadId });
  });

  test("has the id of the row that it will become, and goes to the thread of what it settles", () => {
    const input = { settles: [asked.id], text: "On it, one moment." };
    const draft = draftOf(view(), [reply(input)]);
    const decided = decideStep(
      { ...view(), lane: "team", capped: false, nowMs: 1, agentName: "Switchyard", tasks: new Map(), machines: [], policies: [] },
      [{ callId: "c", tool: "reply", input }],
    );
    const posted = decided.decisions[0]?.effects[0];
    expect(posted?.kind === "post" && { threadId: posted.threadId, draftId: posted.input.id, text: posted.input.text }).toEqual(draft);
  });

  test("is shown from the first word on, and only once it is known whom it answers", () => {
    const json = JSON.stringify({ settles: [asked.id], text: "Hello" });
    const shown = Array.from({ length: json.length + 1 }, (_, end) => draftOf(view(), [{ tool: "reply", json: json.slice(0, end) }])?.text);
    expect([...new Set(shown)]).toEqual([undefined, "H", "He", "Hel", "Hell", "Hello"]);
    expect(draftOf(view(), [{ tool: "reply", json: '{"text":"Hello","settles":["' }])).toBeNull();
  });

  test("is not shown where its place is not certain: several threads, unknown ids, an act that may move it, words that were said", () => {
    const text = "Hello";
    expect(draftOf(view(), [reply({ settles: [asked.id, visitor.id], text })])).toBeNull();
    expect(draftOf(view(), [reply({ settles: ["trg_unknown"], text })])).toBeNull();
    expect(draftOf(view(), [{ tool: "dispatch", json: "{" }, reply({ settles: [asked.id], text })])).toBeNull();
    expect(draftOf(view([[asked.id, { act: null, spoken: true, target: null }]]), [reply({ settles: [asked.id], text })])).toBeNull();
    const moved = { act: "dispatch" as const, spoken: false, target: { threadId: "thr_topic", chain: "dec_x" } };
    expect(draftOf(view([[asked.id, moved]]), [reply({ settles: [asked.id], text })])).toBeNull();
    expect(draftOf(view(), [reply({ settles: [asked.id], text }), { tool: "record", json: "{" }])).toBeNull();
    expect(draftOf(view(), [])).toBeNull();
  });

  test("[D1] [RD15] is shown only beside what tells nothing: beside an act it may be moved, or not be said where that is refused", () => {
    const text = "Hello";
    const beside = (tool: string, item: typeof asked) =>
      draftOf(view(), [{ tool, json: "{" }, reply({ settles: [item.id], text })]) !== null;
    const calm = ["reply", "relay", "record", "ignore", "recall", "find"];
    for (const tool of [...Object.keys(routerTools), "no_such_tool"].filter((each) => each !== "reply"))
      expect([tool, beside(tool, asked), beside(tool, visitor)]).toEqual([tool, calm.includes(tool), calm.includes(tool)]);
  });

  test("is shown in the widget only: not on an issue, not in a chat behind a bridge, and not of a task's report", () => {
    for (const elsewhere of [issue, bridged]) expect(draftOf(view(), [reply({ settles: [elsewhere.id], text: "Hello" })])).toBeNull();
    expect(draftOf(view(), [reply({ settles: [report.id], text: "Hello" })])).toBeNull();
  });

  test("a visitor's draft goes to the visitor's own thread, and a marker of ours never shows", () => {
    const draft = draftOf(view(), [reply({ settles: [visitor.id], text: "Hi <!-- switchyard:out_x.y" })]);
    expect(draft).toMatchObject({ threadId: visitor.threadId, text: "Hi" });
  });
});
