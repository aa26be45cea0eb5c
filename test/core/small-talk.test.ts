import { describe, expect, test } from "vitest";
import { defaultRules, judge } from "../../src/core/gate.ts";
import { isSmallTalk } from "../../src/core/small-talk.ts";
import { shippedGate } from "../bench/lib/shipped-gate.ts";
import { casualTexts, followUpTexts, requestTexts } from "../bench/lib/talk.ts";
import { readSet, setNames } from "../eval/lib/labelled.ts";

describe("small talk", () => {
  test.each([
    "Thanks!",
    "+1",
    "+1 from me",
    "👍🏽",
    ":)",
    "ok",
    "sounds good to me",
    "Good morning everyone",
    "haha, true",
    "no problem",
    "danke!",
    "谢谢",
    "ありがとうございます",
    "see you tomorrow",
  ])("[G14] %j is small talk", (text) => {
    expect(isSmallTalk(text)).toBe(true);
  });

  test.each([
    "",
    "ok, fix it",
    "thanks, but it is still red",
    "stop",
    "no",
    "go on",
    "do it",
    "good morning, the build is down",
    "is it good?",
    "nice, see #12",
    "ok @ana",
    "thanks for `make all`",
    "get it done today",
    "back it up",
    "there is a problem",
    "not good",
    "I like it but it is slow",
    "谢谢,请部署一下",
    "+2",
    `${"thanks ".repeat(30)}`,
  ])("[G14] %j is not", (text) => {
    expect(isSmallTalk(text)).toBe(false);
  });

  test("[G14] the shipped rules keep half of what a team says to each other from the router, and nothing that it asks for", () => {
    expect(casualTexts.filter((text) => !shippedGate(text, "talk")).length / casualTexts.length).toBeGreaterThan(0.45);
    expect([...requestTexts, ...followUpTexts].filter((text) => !shippedGate(text, "follow_up"))).toEqual([]);
  });

  test("[G14] of the labelled messages, none that asks for something is small talk", () => {
    const asking = setNames.flatMap((name) => readSet(name)).filter(({ expected, addressed }) => expected !== "silent" && !addressed);
    expect(asking.length).toBeGreaterThan(10);
    expect(asking.filter(({ text }) => isSmallTalk(text)).map(({ id }) => id)).toEqual([]);
  });

  test("[G14] whoever speaks to us is heard, whatever the words", () => {
    const said = { place: "acme/app", threadId: "thr_a", principal: { role: "member", id: "ana", name: "Ana" }, text: "ok" } as const;
    for (const [source, kind] of [
      ["github", "issue_comment.created"],
      ["generic", "message"],
      ["chat", "message"],
    ] as const) {
      const trigger = { ...said, source, kind, facts: { words: "talk" } };
      expect(judge(defaultRules, { ...trigger, addressed: true }).outcome).toBe("request");
      expect(judge(defaultRules, { ...trigger, addressed: false }).outcome).toBe("record");
    }
  });
});
