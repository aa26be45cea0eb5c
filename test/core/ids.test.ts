import { expect, test } from "vitest";
import { childId, makeId, ownerOf, threadIdOf, triggerIdOf } from "../../src/core/ids.ts";
import { threadId, triggerId } from "../../src/protocol/ids.ts";

test("an id is stable, prefixed and different for different parts", () => {
  expect(makeId("tsk", "a", 1)).toBe(makeId("tsk", "a", 1));
  expect(makeId("tsk", "a", 1)).not.toBe(makeId("tsk", "a", 2));
  expect(makeId("tsk", "ab", "c")).not.toBe(makeId("tsk", "a", "bc"));
});

test("a child id carries its owner", () => {
  const thread = threadIdOf("github", "acme/app", "issue:12");
  const trigger = triggerIdOf("github", "delivery-1", thread);
  expect(threadId.parse(thread)).toBe(thread);
  expect(triggerId.parse(trigger)).toBe(trigger);
  expect(ownerOf(trigger, "thr")).toBe(thread);
  expect(ownerOf(thread, "thr")).toBeNull();
  expect(childId("rep", "tsk_x", 1)).toMatch(/^rep_x-/);
});
