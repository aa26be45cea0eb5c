// Forms that hold no code spans: talk, and questions about what changed.
import type { Intent } from "./intents.ts";

export const words = (text: string): number => text.split(/\s+/).length;

/** Talk that asks for no work. */
export function readSocial(text: string): Intent | null {
  if (
    /^\/?(?:help(?: me)?|\?|commands|usage)$|^(?:what|how much) can (?:you|i|we) (?:do|ask|say)|^who are you|^what(?:'s|’s| is) (?:this|that)$|^what are you\b(?! (?:doing|working|up to|running))|^how (?:do|does|can) (?:i|you|we|this|it) (?:use|work)/i.test(
      text,
    )
  )
    return { kind: "help" };
  if (
    /^(?:hi|hello|hey|hiya|yo|hallo|moin|servus|gr(?:ü|ue)(?:ß|ss)|good (?:morning|afternoon|evening|day)|guten (?:tag|morgen|abend)|bonjour|salut|hola|ciao|greetings)(?![\w-])/i.test(
      text,
    ) &&
    words(text) <= 4
  )
    return { kind: "greeting" };
  if (
    /^(?:thanks?|thank you|thx|ty|cheers|danke|merci|gracias|great|nice|perfect|cool|awesome|excellent|well done|good (?:job|bot|work)|👍|🎉|❤️)(?![\w-])/iu.test(
      text,
    ) &&
    words(text) <= 6
  )
    return { kind: "thanks" };
  if (
    /\bwhat(?:'s|’s| is| are)? (?:going on|happening|running|the (?:status|state|progress)|you (?:doing|working on|up to)|are you (?:doing|working on|up to|running))|^what are you (?:doing|working on|up to|running)|^(?:the )?status\b|how(?:'s|’s| is) (?:it|everything|the task|that) (?:going|coming)|^how far\b|^any (?:news|updates?|progress)\b|^are you (?:done|finished|busy|still|there)\b|^is (?:it|that|anything|everything) (?:done|finished|ready|running)\b|^what(?:'s|’s| is) up\b/i.test(
      text,
    )
  )
    return { kind: "status" };
  return null;
}

const sinceWords =
  /\b(yesterday|today|this morning|last (?:night|week|month|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|this week|monday|tuesday|wednesday|thursday|friday|\d{4}-\d{2}-\d{2}|\d+ (?:minutes?|hours?|days?|weeks?|months?) ago|(?:the )?(?:last|past) \d+ (?:minutes?|hours?|days?|weeks?|months?))\b/i;

/** Questions about the history of the folder. */
export function readChanges(clause: string): Intent[] | null {
  if (
    /\buncommitted\b|\b(?:show|see|what(?:'s|’s| is)) (?:me )?(?:the )?(?:current )?diff\b|\bunstaged\b|\bnot (?:yet )?committed\b/i.test(
      clause,
    )
  )
    return [{ kind: "changes", uncommitted: true }];
  const commits =
    /\b(?:last|latest|recent|newest|previous)\b(?: (\d+))? (?:commits?|changes)\b|\bcommit (?:log|history)\b|\bgit (?:log|history)\b/i.exec(
      clause,
    );
  const changed =
    /\bwhat(?:'s|’s| has| have| is| was)?(?: been)? (?:changed|new|happened in (?:the )?(?:repo|code|project)\w*)\b|^(?:which|what) (?:commits?|changes)\b|^who changed\b|^(?:show|list)(?: me)? (?:the )?(?:changes|commits)\b/i.test(
      clause,
    );
  if (!commits && !changed) return null;
  const since = sinceWords.exec(clause)?.[1]?.toLowerCase();
  return [
    {
      kind: "changes",
      ...(since ? { since: sinceOf(since) } : {}),
      ...(commits?.[1] ? { commits: Math.min(100, Number(commits[1])) } : {}),
    },
  ];
}

/** The words of a time as git reads them. */
function sinceOf(since: string): string {
  const ago = /(?:last|past) (\d+ \w+)$/.exec(since);
  if (ago?.[1]) return `${ago[1]} ago`;
  if (since === "yesterday") return "yesterday 00:00";
  if (since === "today" || since === "this morning") return "today 00:00";
  if (since === "this week" || since === "last week") return "1 week ago";
  if (since === "last month") return "1 month ago";
  if (since === "last night") return "yesterday 18:00";
  return since;
}
