import { describe, expect, test } from "vitest";
import { mentions } from "../../src/core/mention.ts";

describe("[G3] a mention", () => {
  test.each([
    "@switchyard-bot run the tests",
    "please, @Switchyard-Bot!",
    "(@switchyard-bot)",
    "请@switchyard-bot看一下",
    "@switchyard-bot.",
    "> quoted\n\n@switchyard-bot what about this?",
    "`code` and @switchyard-bot and `more`",
    "a stray ` and @switchyard-bot",
    "one ` paragraph\n\n@switchyard-bot other ` paragraph",
    "<!-- hidden --> @switchyard-bot",
  ])("counts in %j", (text) => {
    expect(mentions(text, "switchyard-bot")).toBe(true);
  });

  test.each([
    "",
    "switchyard-bot",
    "@switchyard",
    "@switchyard-bots",
    "@switchyard-bot-2",
    "@switchyard-bot/team",
    "me@switchyard-bot.example",
    "mail to x@switchyard-bot",
    "@switchyard-bot.example",
    "https://host.example/@switchyard-bot",
    "> @switchyard-bot run the tests",
    "```\n@switchyard-bot\n```",
    "~~~\n@switchyard-bot",
    "say `@switchyard-bot help` to it",
    "say ``a ` @switchyard-bot`` to it",
    "<!-- @switchyard-bot -->",
    "<!-- @switchyard-bot",
  ])("does not count in %j", (text) => {
    expect(mentions(text, "switchyard-bot")).toBe(false);
  });

  test("of a GitHub App leaves its [bot] out", () => {
    expect(mentions("@switchyard do it", "switchyard[bot]")).toBe(true);
    expect(mentions("@switchyard[bot] do it", "switchyard[bot]")).toBe(true);
  });

  test("is never of an empty or odd login", () => {
    expect(mentions("@ @.* hello", "")).toBe(false);
    expect(mentions("@anything", ".*")).toBe(false);
  });

  test.each(["`", "<!--", "` `` ", "`a", "> ", "@switchyard-"])("is looked for in linear time among many %j", (piece) => {
    const text = `@ ${piece.repeat(100_000 / piece.length)}`;
    mentions(text, "switchyard-bot");
    const began = process.threadCpuUsage();
    mentions(text, "switchyard-bot");
    expect(process.threadCpuUsage(began).user).toBeLessThan(200_000);
  });
});
