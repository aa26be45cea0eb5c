// What a call of the router's model must be before anything of it is decided: of its schema, and short enough for its channel.
import * as z from "zod/mini";
import { limits } from "../protocol/limits.ts";
import type { ModelReply } from "../protocol/model.ts";
import { type RouterCall, type RouterTool, routerTools } from "../protocol/router-tools.ts";
import { excerpt } from "./context.ts";
import { countWords, fitManner, mannerOf } from "./manners.ts";
import type { InboxItem } from "./router.ts";

/** [RD1] The call as its schema says, or a sentence on what is wrong with it. Nothing half-parsed is done. */
export function readCall(call: ModelReply["calls"][number]): RouterCall | { problem: string } {
  if (!Object.hasOwn(routerTools, call.tool)) {
    const name = /^[\w-]{1,40}$/.test(call.tool) ? `"${call.tool}"` : "of that name";
    return { problem: `There is no tool ${name}. The tools are ${Object.keys(routerTools).join(", ")}.` };
  }
  const tool = call.tool as RouterTool;
  const parsed = z.safeParse(routerTools[tool].input, call.input);
  if (parsed.success) return { callId: call.callId, tool, input: parsed.data } as RouterCall;
  const issue = parsed.error.issues[0];
  return {
    problem: `The input of ${tool} does not fit: ${issue?.path.join(".") || "input"} ${excerpt(issue?.message ?? "is invalid", 160)}`,
  };
}

/** Whether a text can be the id of an object, or the name of an item of a turn. */
export const isId = (text: string): boolean => /^(?:[a-z]+_[a-z0-9-]{1,60}|\d{1,9}\.\d{1,4})$/.test(text);

export const safeId = (id: string): string => (isId(id) ? id : "an id that is none");

/** [RD11] Words that are too long for their channel come back once, while the turn has a step left; then they are cut by code. */
export function tooLong(
  view: { step: number; shortened?: ReadonlySet<string> },
  settled: readonly InboxItem[],
  source: string,
  text: string,
): { refused: string; settles: string[]; tooLong: true } | null {
  const words = countWords(text);
  if (fitManner(text, mannerOf(source)) === text || view.step >= limits.maxRouterStepsPerTurn) return null;
  if (settled.some((item) => view.shortened?.has(item.id) || item.attempts > 0)) return null;
  return {
    refused: `Not sent: ${words} words, and ${limits.maxInstantWords} fit here. Say it again with reply, the most important first. What is still too long is cut, with the full text one click away.`,
    settles: settled.map((item) => item.id),
    tooLong: true,
  };
}
