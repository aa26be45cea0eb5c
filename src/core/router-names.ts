// Short names of what waits in a turn: `7.2` is the second item of turn 7. A model writes names; decisions, rows and recalls have ids.
import type { ModelReply } from "../protocol/model.ts";
import { isRecord } from "./json.ts";

/** Name → id, in the order the items came. */
export type ItemNames = ReadonlyMap<string, string>;

/** The name of the item at an index of its turn; one that joins later is counted on, so that a name means one item for good. */
export const nameOf = (turn: number, index: number): string => `${turn}.${index + 1}`;

export const namesOf = (turn: number, ids: Iterable<string>): ItemNames => new Map([...ids].map((id, index) => [nameOf(turn, index), id]));

/** [RI10] What a model wrote with names in it, as ids say it; what is no name of this turn stays as it is, and is refused by who reads it. */
export function expandIds(value: unknown, names: ItemNames): unknown {
  if (typeof value === "string") return names.get(value) ?? value;
  return Array.isArray(value) ? value.map((each) => (typeof each === "string" ? (names.get(each) ?? each) : each)) : value;
}

/** The calls of an answer with ids. The transcript keeps the words of the model: a name is unique in it. */
export const expandCalls = (calls: ModelReply["calls"], names: ItemNames): ModelReply["calls"] =>
  calls.map((call) => {
    if (!isRecord(call.input)) return call;
    const named = Object.entries(call.input).filter(([field]) => fields.includes(field));
    return { ...call, input: { ...call.input, ...Object.fromEntries(named.map(([field, value]) => [field, expandIds(value, names)])) } };
  });

/** Where a call may name an item of its turn. */
const fields = ["settles", "report", "id"];
