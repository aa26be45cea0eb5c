// What an owner says about rules and policies, in the forms that the offline model's help lists; null when it is none of them.

/** The input of `set_policy`, without what it settles. */
export type PolicyForm = Record<string, unknown>;

const quotes = "[\"“”'‘’]*";

export function readPolicy(said: string): PolicyForm | null {
  const text = said
    .replace(/^\s*@\S+\s+/, "")
    .replace(/^\s*please\s+/i, "")
    .trim();
  const named = /^(confirm|undo) (rul_[a-z0-9]+)\b/i.exec(text);
  if (named?.[1] !== undefined) return { [named[1].toLowerCase()]: named[2]?.toLowerCase() };
  if (/^(?:list|show)(?: me)?(?: the| all| our)? (?:policies|rules)[.!?]*$/i.test(text)) return { list: true };
  const unwanted =
    new RegExp(
      `^(?:stop|don['’]?t|do not) (?:react|respond|reply|answer|listen)\\w* to ${quotes}@?([\\w.[\\]-]{1,60}?)${quotes}[.!]*$`,
      "iu",
    ).exec(text)?.[1] ?? new RegExp(`^mute ${quotes}@?([\\w.[\\]-]{1,60}?)${quotes}[.!]*$`, "iu").exec(text)?.[1];
  if (unwanted !== undefined) return { outcome: "mute", source: "github", principal: unwanted };
  const place = /^mute ["“”']*([\w.-]{1,60}\/[\w.-]{1,60}?)(#\d{1,9})?["“”'.!]*$/iu.exec(text);
  if (place?.[1] !== undefined)
    return { outcome: "mute", source: "github", place: place[1], ...(place[2] === undefined ? {} : { thread: place[2] }) };
  const switched = /^(?:switch|turn) (?:the )?policy ([a-z0-9][a-z0-9-]{0,39}) (on|off)[.!]*$/i.exec(text);
  if (switched?.[1] !== undefined) return { change: { id: switched[1].toLowerCase(), on: switched[2]?.toLowerCase() === "on" } };
  const worded = /^policy ([a-z0-9][a-z0-9-]{0,39}):\s+(.{3,2000})$/isu.exec(text);
  if (worded?.[1] !== undefined) return { change: { id: worded[1].toLowerCase(), text: worded[2] } };
  return null;
}

/** [RD9] A bare “yes” right after our question: the line that confirms it, which only the owner can write. Null when it is something else. */
export function lineToConfirm(said: string, last: { from: string; text: string } | undefined): string | null {
  const asked = last?.from === "you" ? /^Say “(confirm rul_[a-z0-9]+)”/.exec(last.text)?.[1] : undefined;
  const isAssent =
    /^(?:@\S+[\s,:]+)?(?:yes|yep|yeah|yup|sure|ok|okay|confirm|confirmed|do it|go ahead|ja)(?:[\s,.!]+please)?[\s.!]*$/i.test(said.trim());
  return isAssent ? (asked ?? null) : null;
}
