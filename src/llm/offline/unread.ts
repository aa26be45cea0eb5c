// What of a request no form reads. An instruction of its own is named to whoever gave it; greetings, reasons, and what every report says
// anyway, are passed over.
import { excerpt } from "../../core/context.ts";
import type { Intent } from "./intents.ts";

/** They begin an instruction that no form reads. */
export const strangeVerbs = "email|notify|ping|remind|download|upload|publish|copy|move|compare";

const instruction = new RegExp(
  `^(?:run|rerun|re-run|execute|build|rebuild|compile|check|verify|find|search|grep|locate|show|list|read|open|print|display|count|start|use|set|tell|let|send|give|say|post|make sure|${strangeVerbs}|look (?:at|for|into|through|up))\\s+\\S`,
  "i",
);

const narrative =
  /^(?:tell|report|let|give|send|post|print|share|say|show|see|what|which|how|summari[sz]e)\b.*\b(?:fail\w*|pass\w*|result\w*|output|happen\w*|know|wrong|broken?|works?|say|says|it|them|outcome|find|found|see|is|are)\b/i;
const asksForWord =
  /^(?:tell|let|give|send|say|report|post|ping|notify|ask)\b(?:\s+(?:back|to|it|that|this|me|us|everyone|everybody|here|know))*\s*(?:$|(?:when|once|if|whether|as soon|in case)\b|(?:an? |the )?(?:short |brief |quick |full )*(?:summary|overview|report|update|feedback|details?|verdict|answer)(?: (?:of|on|about|for)\b.*)?$)/i;
const toOthers =
  /^(?:[Tt]ell|[Ll]et|[Ss]end|[Gg]ive|[Ss]how|[Nn]otify|[Pp]ing)\s+(?:him|her|them|\p{Lu}\p{Ll}+)(?!\p{L})|\s(?:to|with)\s+(?:#\S|\p{Lu}\p{Ll}+)/u;

/** "… and tell me what fails" only asks for what every report says. */
export const asksForReport = (clause: string): boolean => !toOthers.test(clause) && (narrative.test(clause) || asksForWord.test(clause));

/** The instructions among what was not read, in their order. */
export const unreadOf = (intents: readonly Intent[]): string[] =>
  intents.flatMap((intent) => (intent.kind === "unknown" && instruction.test(intent.text) ? [intent.text] : []));

/** The first few of them, and how many more there are. */
export const quoted = (texts: readonly string[]): string =>
  `${texts
    .slice(0, 3)
    .map((text) => `“${excerpt(text, 60)}”`)
    .join(", ")}${texts.length > 3 ? ` and ${texts.length - 3} more` : ""}`;
