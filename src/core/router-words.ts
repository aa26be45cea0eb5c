// Words that stand beside other calls of one answer: they are said only where nothing that they may tell of was refused.
import { type RouterCall, type RouterTool, routerReads } from "../protocol/router-tools.ts";
import { isRecord } from "./json.ts";

const speeches: readonly RouterTool[] = ["reply", "relay"];
/** Whether they were taken or not, no reply tells of them. */
export const tellNothing: readonly string[] = [...speeches, "record", "ignore"];
/** May stand beside an act and a word for the same item, and more than once. */
export const asides: readonly RouterTool[] = ["remember", "schedule"];

export type RefusedCall = { tool: string; settles: string[]; reason: string };

/** What a call says that it settles, also where the rest of it does not fit. */
export function settlesIn(input: unknown): string[] {
  const settles = isRecord(input) ? input.settles : [];
  return Array.isArray(settles) ? settles.filter((id) => typeof id === "string") : [];
}

type Read = RouterCall | { problem: string } | undefined;

export const isSpeech = (call: Read): boolean => call !== undefined && "tool" in call && speeches.includes(call.tool);
export const isRead = (call: Read): boolean => call !== undefined && "tool" in call && routerReads.includes(call.tool);

/** [RD15] A reply beside a call for the same item that code refused comes back, with the reason: it may tell of what was not done. */
export function untrueBeside(
  call: RouterCall,
  refused: readonly RefusedCall[],
  progress: ReadonlyMap<string, { act: RouterTool | null }>,
): { refused: string; settles: string[]; again: true } | null {
  if (call.tool !== "reply") return null;
  const { settles } = call.input;
  const beside = refused.find(
    ({ tool, settles: of }) =>
      !tellNothing.includes(tool) &&
      of.some((id) => settles.includes(id) && (asides.some((each) => each === tool) || (progress.get(id)?.act ?? null) === null)),
  );
  if (beside === undefined) return null;
  return { refused: `Not said, because ${beside.tool} was refused: ${beside.reason} Say what is so.`, settles, again: true };
}
