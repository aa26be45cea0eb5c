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

export const makeLog =
  (json: boolean, write: (line: string) => void, nowMs: () => number): Log =>
  ({ event, text, ...fields }) => {
    if (json) write(`${JSON.stringify({ at: new Date(nowMs()).toISOString(), event, text, ...fields })}\n`);
    // In words, acceptance and start of each command are noise beside its end.
    else if (event !== "accepted" && event !== "started") write(`${text}\n`);
  };
