// Reads a JSON object while it is being written: what is finished, and the beginning of the text that is under way.

export type PartialField = { value: unknown; whole: boolean };

/** The fields of an object in the order they were written. A text that is under way has what is there of it; anything else unfinished is left out. */
export function readPartialObject(json: string): Map<string, PartialField> {
  const fields = new Map<string, PartialField>();
  let at = skipSpace(json, 0);
  if (json[at] !== "{") return fields;
  at += 1;
  for (;;) {
    at = skipSpace(json, at);
    if (json[at] === ",") at = skipSpace(json, at + 1);
    if (json[at] !== '"') return fields;
    const keyEnd = endOfString(json, at);
    if (keyEnd === null) return fields;
    const key = parsed(json.slice(at, keyEnd));
    at = skipSpace(json, keyEnd);
    if (typeof key !== "string" || json[at] !== ":") return fields;
    at = skipSpace(json, at + 1);
    const end = endOfValue(json, at);
    if (end === null) {
      if (json[at] === '"') fields.set(key, { value: beginningOfString(json.slice(at)), whole: false });
      return fields;
    }
    const value = parsed(json.slice(at, end));
    if (value === undefined) return fields;
    fields.set(key, { value, whole: true });
    at = end;
  }
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (at < json.length && /\s/.test(json[at] ?? "")) at += 1;
  return at;
}

/** After the closing quote; null while it is missing. */
function endOfString(json: string, from: number): number | null {
  for (let at = from + 1; at < json.length; at++) {
    if (json[at] === "\\") at += 1;
    else if (json[at] === '"') return at + 1;
  }
  return null;
}

/** After a value whose end is certain: a number may go on until something else follows. */
function endOfValue(json: string, from: number): number | null {
  const first = json[from];
  if (first === '"') return endOfString(json, from);
  if (first !== "{" && first !== "[") {
    const rest = /[,}\s]/.exec(json.slice(from));
    return rest === null ? null : from + rest.index;
  }
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const char = json[at];
    if (char === '"') {
      const end = endOfString(json, at);
      if (end === null) return null;
      at = end - 1;
    } else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return null;
}

/** Without an escape that is half there, and without half a character. */
function beginningOfString(json: string): string {
  const text = parsed(`${json.replace(/\\(?:u[0-9a-fA-F]{0,3})?$/, (tail, at: number) => (isEscaped(json, at) ? tail : ""))}"`);
  return typeof text === "string" ? text.replace(/[\ud800-\udbff]$/, "") : "";
}

/** Whether the backslash at this place is itself the second half of an escape. */
function isEscaped(json: string, at: number): boolean {
  let before = at;
  while (json[before - 1] === "\\") before -= 1;
  return (at - before) % 2 === 1;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
