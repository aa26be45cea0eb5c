// One line a happening: plain words for people, or JSON lines with `--json` for programs.

type Happening = {
  event:
    | "ready"
    | "connected"
    | "disconnected"
    | "accepted"
    | "started"
    | "ran"
    | "refused"
    | "recovered"
    | "granted"
    | "warning"
    | "ended";
  text: string;
  [field: string]: string | number | boolean | null | undefined;
};

export type Log = (happening: Happening) => void;

/**
 * Words of others, made harmless for a terminal: control characters (C0 without the line end, C1) and those that turn the direction of
 * writing show as their escape, which in JSON means the same.
 */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, (each) =>
    each === "\n" ? each : `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** One line of it: a line end inside would begin a line that nobody wrote. */
export const printableLine = (text: string): string => printable(text).replaceAll("\n", "\\u000a");

export const makeLog =
  (json: boolean, write: (line: string) => void, nowMs: () => number): Log =>
  ({ event, text, ...fields }) => {
    if (json) write(`${JSON.stringify({ at: new Date(nowMs()).toISOString(), event, text, ...fields })}\n`);
    // In words, acceptance and start of each command are noise beside its end.
    else if (event !== "accepted" && event !== "started") write(`${printableLine(text)}\n`);
  };
