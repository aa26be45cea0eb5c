import { describe, expect, test } from "vitest";
import { expandCalls, namesOf } from "../../src/core/router-names.ts";

const names = namesOf(7, ["trg_a-1", "rep_b-2"]);
const call = (tool: string, input: unknown) => ({ callId: "c", tool, input });

describe("[RI10] short names", () => {
  test("are turn and place, counted on when something joins", () => {
    expect([...names]).toEqual([
      ["7.1", "trg_a-1"],
      ["7.2", "rep_b-2"],
    ]);
    expect([...namesOf(7, [...names.values(), "trg_c-3"])].slice(0, 2)).toEqual([...names]);
  });

  test("become ids where a call names an item, and nowhere else", () => {
    const input = { settles: ["7.1", "trg_x-9", 5], report: "7.2", id: "7.1", text: "7.1", facts: "7.2" };
    expect(expandCalls([call("relay", input)], names)[0]?.input).toEqual({
      settles: ["trg_a-1", "trg_x-9", 5],
      report: "rep_b-2",
      id: "trg_a-1",
      text: "7.1",
      facts: "7.2",
    });
  });

  test("of another turn, and inputs that are no object, stay as they are", () => {
    const calls = [call("record", { settles: ["6.1", "7.3"] }), call("record", null), call("record", "7.1"), call("record", ["7.1"])];
    expect(expandCalls(calls, names)).toEqual(calls);
  });
});
