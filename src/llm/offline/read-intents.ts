// What a person's text asks for, in the few forms that the offline model knows. Code spans and fences are commands only where the person says so.
import { literal } from "../../core/regexp.ts";
import type { MarkedText } from "../../protocol/context-items.ts";
import { type Intent, isWork, type Purpose } from "./intents.ts";
import { readChanges, readSocial, words } from "./plain-forms.ts";
import { asScript, isCommandLine, isDestructive, isPlainlyCommand } from "./shell.ts";
import { corrected } from "./typos.ts";
import { asksForReport, strangeVerbs, unreadOf } from "./unread.ts";

const verbs = `run|rerun|re-run|execute|exec|try|test|build|rebuild|compile|lint|typecheck|type-check|check|find|search|grep|look|locate|show|list|read|open|print|display|view|cat|count|stop|cancel|abort|fix|write|add|create|implement|refactor|rename|delete|remove|update|tell|report|let|give|send|post|say|explain|describe|summari[sz]e|what|which|how|why|see|commit|push|merge|deploy|install|start|use|make sure|review|never mind|${strangeVerbs}`;
const clauseBreak = new RegExp(
  `(?:,|;)?\\s+(?:and then|and also|then also|and|then|also|but|plus)\\s+(?=(?:also\\s+|then\\s+|please\\s+|just\\s+)*(?:${verbs})\\b)|;\\s+|,\\s+(?=(?:then|and|also)?\\s*(?:${verbs})\\b)`,
  "i",
);
const polite =
  /^(?:please|pls|plz|kindly|(?:could|can|would|will) (?:you|we|someone|u)(?: please)?|i(?:'d| would) like (?:you )?to|i (?:want|need)(?: you)? to|you should|let'?s|let us|go ahead and|just|now|ok(?:ay)?|so|well|and|then|also|quickly|maybe|actually|rather|sorry|no|yes|yep|yeah|sure|hey|hi|hello)(?:[,:!]\s*|\s+)/i;
const trailing =
  /(?:(?:\s*,\s*|\s+)(?:please|pls|plz|thanks|thank you|thx|for me|for us|right now|now|asap|real quick|quickly|if you can|if possible))+$/i;

const codeMark = /⟦(\d+)⟧/;
const codeMarks = /⟦(\d+)⟧/g;

type Reading = { codes: string[]; data: MarkedText["data"] };

/** No form needs a long run of blanks or marks, and many would look at each of them again and again: whoever may write could stop us by it. */
export const shortRuns = (text: string): string =>
  text
    .replace(/\s{40,}/g, (blank) => (blank.includes("\n") ? "\n\n" : " "))
    .replace(/[.!?…]{40,}|[`"'“”„]{40,}/g, (marks) => marks.slice(0, 39));

/** Every request of a text, in its order. Words of a machine's name (`on studio-laptop`) are left out. */
export function readIntents(marked: MarkedText, machineNames: readonly string[] = []): Intent[] {
  const codes: string[] = [];
  let text = shortRuns(marked.text)
    .replace(/\r\n?/g, "\n")
    .replace(/[⟦⟧]/g, "")
    .replace(/(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)/g, (_, _ticks: string, code: string) => `⟦${codes.push(code.trim()) - 1}⟧`)
    // "Run this:" and the fence below it are one clause.
    .replace(/:?[^\S\n]*\n\s*(\[data \d+\])/g, " $1");
  text = addressedPart(text);
  for (const name of machineNames)
    text = text.replace(
      new RegExp(`\\s+(?:on|at|using|with)\\s+(?:the\\s+|my\\s+)?["“']?${literal(name)}["”']?(?:\\s+machine)?(?![\\w-])`, "giu"),
      "",
    );
  const reading: Reading = { codes, data: marked.data };
  const intents: Intent[] = [];
  for (const sentence of text.split(/(?<=[.!?])\s+|\n+/)) {
    for (const clause of sentence.split(clauseBreak)) {
      const found = clause === undefined ? [] : readClause(clause, reading);
      for (const intent of found) if (!intents.some((other) => JSON.stringify(other) === JSON.stringify(intent))) intents.push(intent);
    }
  }
  return intents;
}

/** The instructions of a request that are not read, in the paragraphs that hold work; the others are context. */
export const unreadBesideWork = (marked: MarkedText, machineNames: readonly string[]): string[] =>
  marked.text
    .split(/\n[^\S\n]*\n/)
    .map((text) => readIntents({ ...marked, text }, machineNames))
    .filter((intents) => intents.some((intent) => isWork(intent) || intent.kind === "again"))
    .flatMap(unreadOf);

/** Of a longer text that names us (`@switchyard run the tests`), the paragraph that does; else all of it. */
function addressedPart(text: string): string {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => /(?:^|\s)@[\w-]+/.test(line));
  if (at < 0) return text;
  const end = lines.findIndex((line, i) => i > at && line.trim() === "");
  const part = lines
    .slice(at, end < 0 ? undefined : end)
    .join("\n")
    .replace(/(^|\s)@[\w-]+(?:\[bot\])?[,:]?/g, "$1");
  return part.trim() === "" ? text.replace(/(^|\s)@[\w-]+(?:\[bot\])?[,:]?/g, "$1") : part;
}

/** A word or quoted phrase as its text: code spans come back, quotation marks go. */
function plain(text: string, reading: Reading): string {
  return text
    .replace(codeMarks, (_, n: string) => reading.codes[Number(n)] ?? "")
    .trim()
    .replace(/^(["'“”‘’«])(.*?)(["'“”‘’»])$/s, "$2");
}

function readClause(raw: string, reading: Reading): Intent[] {
  const clause = raw.trim().replace(/^(?:[-*•]|\d+[.)])\s+/, "");
  const whole = clause.replace(/[.!?…\s]+$/, "").trim();
  if (whole === "") return clause.includes("?") ? [{ kind: "help" }] : [];
  const social = readSocial(whole);
  if (social) return [social];
  return readSpelled(clause, reading);
}

/** As it is written; where that makes no sense, or only a part of the tests, as it was most likely meant. */
function readSpelled(clause: string, reading: Reading): Intent[] {
  const found = readPolite(clause, reading);
  const isDoubtful = found.some(
    (intent) => (intent.kind === "unknown" && intent.text !== "") || (intent.kind === "project" && intent.only !== undefined),
  );
  if (!isDoubtful || clause.includes("⟦") || /["“[]/.test(clause)) return found;
  const meant = corrected(clause);
  if (meant === clause) return found;
  const again = readPolite(meant, reading);
  return again.some((intent) => intent.kind === "unknown") ? found : again;
}

const asksHow = /^how (?:(?:do|can|could|should|would|might) (?:i|we|one|you|people|someone|somebody)|to)\b/i;

function readPolite(raw: string, reading: Reading): Intent[] {
  let clause = raw;
  for (let next = clause.replace(polite, ""); next !== clause; next = clause.replace(polite, "")) clause = next;
  clause = clause
    .replace(/[.!?…:\s]+$/, "")
    .replace(trailing, "")
    .trim();
  if (clause === "" || /^(?:and|then|also|or|but)$/i.test(clause)) return [];
  if (/^(?:don'?t|do not|never(?! ?mind)|no need to|without|not)\b/i.test(clause)) return [];
  // Whoever asks how to do it wants to do it.
  if (asksHow.test(clause)) return [{ kind: "unable", what: plain(clause, reading) }];
  return (
    readControl(clause, reading) ??
    readSpelledOut(clause, reading) ??
    readFiles(clause, reading) ??
    readChanges(clause) ??
    readProject(clause, reading) ??
    readNamed(clause) ?? [readRest(clause, reading)]
  );
}

function readControl(clause: string, reading: Reading): Intent[] | null {
  const stop = /^(?:stop|cancel|abort|kill|halt|never ?mind|forget (?:it|that|about it)(?=$|[,;.!]))\b\s*(.*)$/i.exec(clause);
  if (stop) return [{ kind: "stop", target: plain(stop[1] ?? "", reading) }];
  if (
    /^(?:try|run|do) (?:it|that|this|them|again)(?: (?:once more|again))?$|^(?:again|retry|once more|re-?run(?: (?:it|that|them))?|try once more)$/i.test(
      clause,
    )
  )
    return [{ kind: "again" }];
  return null;
}

const runVerb = /^(?:run|rerun|re-run|execute|exec|try|start|launch|use|call|invoke|do)\b[:\s]*/i;
/** What people say around a command: `does … pass`, `why does … fail`. */
const aroundCommand =
  /^(?:(?:does|do|did|is|will|would|why does|why do|why did|why is|see if|check (?:if|that|whether)|tell me (?:if|why|whether))\s*)?(?:still\s+)?(?:pass(?:es|ing)?|fail(?:s|ed|ing)?|works?|builds?|succeeds?|green|red|broken|again|instead)?$/i;

function readSpelledOut(clause: string, reading: Reading): Intent[] | null {
  const fence = /\[data (\d+)\]/.exec(clause);
  if (fence && runVerb.test(clause)) {
    const block = reading.data?.[Number(fence[1]) - 1];
    if (block?.kind === "fence" && /^(?:|sh|bash|zsh|shell|console|terminal)$/i.test(block.info ?? "") && block.text.trim() !== "")
      return [{ kind: "command", script: block.text.replace(/^\$ /gm, "").trim() }];
    return null;
  }
  // Code inside of quotation marks is part of a name.
  if (/["“][^"”]*⟦\d+⟧[^"”]*["”]/.test(clause)) return null;
  if (codeMark.test(clause)) {
    const marks = [...clause.matchAll(codeMarks)];
    const inFolder = /\b(?:in|inside|within|under|from)(?: the)?(?: folder| directory| dir)?\s+⟦(\d+)⟧/i.exec(clause);
    const cwd = inFolder ? reading.codes[Number(inFolder[1])] : undefined;
    const commands = marks.filter((mark) => mark[1] !== inFolder?.[1]).map((mark) => reading.codes[Number(mark[1])] ?? "");
    const isSaid = runVerb.test(clause) && !/^(?:use|do|call)\b/i.test(clause) ? true : /^(?:use|do|call)\b/i.test(clause);
    const around = clause.replace(codeMarks, " ").replace(/\s+/g, " ").trim();
    if (commands.length > 0 && commands.every((command) => command !== "") && (isSaid || aroundCommand.test(around)))
      return commands.map((script) => {
        // A lone word in code (`test:unit`) names a script of the project, unless it is a program.
        if (/^[\w:.-]+$/.test(script) && !isCommandLine(script) && !isPlainlyCommand(script)) return { kind: "script", name: script };
        return { kind: "command", script: asScript(script), ...(cwd ? { cwd } : {}) };
      });
    return null;
  }
  const said = /^(?:run|rerun|re-run|execute|exec|use|try)\s*:?\s+(.+)$/is.exec(clause);
  const line = said ? plain(said[1]?.replace(/\s+instead$/i, "") ?? "", reading) : clause;
  if (!said && isDestructive(line)) return [{ kind: "command", script: asScript(line), unsure: true }];
  if (said ? isCommandLine(line) : isPlainlyCommand(line)) return [{ kind: "command", script: asScript(line) }];
  return null;
}

const knownFiles = /^(?:readme|makefile|dockerfile|license|changelog|contributing|justfile|rakefile|gemfile|procfile)(?:\.\w+)?$/i;
const isPath = (text: string): boolean =>
  text.length > 0 &&
  !/^https?:/i.test(text) &&
  !/\s/.test(text) &&
  (knownFiles.test(text) || text.includes("/") || /\.[A-Za-z0-9]{1,8}$/.test(text) || text.startsWith("."));

function readFiles(clause: string, reading: Reading): Intent[] | null {
  if (
    /^(?:find|search|look) (?:for )?(?:the |a |an |any |all |some )?(?:bugs?|problems?|issues?|mistakes?|vulnerabilit\w+|flaws?|cause|reason)\b/i.test(
      clause,
    )
  )
    return null;

  const count = /^(?:count|how many)\b\s*(?:the |all )*(.*)$/i.exec(clause);
  if (count && !/\btests?\b/i.test(clause)) return [readCount(count[1] ?? "", reading)];

  if (
    /^(?:list|show)(?: me)?(?: all)?(?: the| our| my)?\s*(?:files|folder|directory|tree|workspace|contents?)\b|^what(?:'s|’s| is| files (?:are|do we have))\b.*\b(?:in (?:this|the|my|our|there|here)\b|files\b|here$|there$)(?!.*\b(?:file|readme)\b)|^(?:which|what) files\b(?! (?:mention|contain|use|have|import|reference))/i.test(
      clause,
    )
  ) {
    const path = /\b(?:in|of|under|below|inside)\s+(?:the\s+)?(?:folder\s+|directory\s+)?(\S+)(?:\s+(?:folder|directory))?$/i.exec(
      clause,
    )?.[1];
    const named = path ? plain(path, reading) : "";
    return [
      /^(?:|this|here|the|there|it|folder|directory|project|workspace|repo|repository|my|our)$/i.test(named)
        ? { kind: "list" }
        : { kind: "list", path: named },
    ];
  }

  const read =
    /^(?:read|show|open|cat|print|display|view|look at|look into)\b(?: me)?(?: us)?(?: the)?(?: (?:file|contents? of(?: the)?(?: file)?))*\s+(\S+|"[^"]+")(?: file)?$/i.exec(
      clause,
    ) ??
    /^(?:what(?:'s|’s| is)(?: in| inside)|what does)(?: the)?(?: file)?\s+(\S+|"[^"]+")(?: file)?(?: (?:say|contain|look like))?$/i.exec(
      clause,
    );
  if (read) {
    const path = plain(read[1] ?? "", reading);
    if (isPath(path)) return [{ kind: "read", path }];
  }

  const files =
    /^(?:find|locate|search for)\s+(?:all |the |any |every )*(?:files? )?(?:named |called |matching )?(\S+|"[^"]+")(?: files?)?$/i.exec(
      clause,
    );
  const pattern = files ? plain(files[1] ?? "", reading) : "";
  if (
    files &&
    (pattern.includes("*") ||
      (/\bfiles?\b/i.test(clause) && pattern !== "") ||
      (isPath(pattern) && !pattern.includes("/") && !codeMark.test(clause)))
  )
    return [{ kind: "find_files", pattern }];

  const search =
    /^(?:find|search|grep|look|locate)\b(?: (?:through|in) (?:the |our |all )*(?:code|files|project|repo(?:sitory)?|sources?))?(?: (?:for|up))?\s+(.+)$/is.exec(
      clause,
    ) ??
    /^where (?:is|are|do we|does the code|do you)\s+(.+?)(?: (?:defined|used|declared|implemented|called|set|mentioned))?$/i.exec(clause) ??
    /^(?:which|what) files? (?:mention|contain|use|have|import|reference)s?\s+(.+)$/i.exec(clause);
  if (search) {
    const where = /\s+(?:in|under|inside)\s+(?:the\s+)?(?:folder\s+|directory\s+)?(\S+)$/i.exec(search[1] ?? "");
    const path = where ? plain(where[1] ?? "", reading) : "";
    const subject = where ? (search[1] ?? "").slice(0, where.index) : (search[1] ?? "");
    const query = subjectOf(subject, reading);
    if (query !== "") return [{ kind: "search", query, ...(path !== "" && isPath(path) ? { where: path } : {}) }];
  }
  return null;
}

/** What to search for: the quoted or code part if there is one, else the words without what only leads to them. */
function subjectOf(text: string, reading: Reading): string {
  const exact = /⟦\d+⟧|"[^"]+"|“[^”]+”|'[^']+'/.exec(text);
  if (exact) return plain(exact[0], reading);
  const bare = text
    .replace(
      /^(?:all|every|each|any|the|uses?|usages?|occurrences?|mentions?|references?|places?|of|where|we|to|(?:the )?(?:text|word|string|function|class|variable|symbol))\s+/i,
      "",
    )
    .replace(
      /\s+(?:comments?|is used|are used|everywhere|in (?:the|this|our) (?:code|project|repo(?:sitory)?|files|folder|workspace))$/i,
      "",
    )
    .trim();
  if (bare !== text.trim()) return subjectOf(bare, reading);
  return /^[A-Z]{2,}s$/.test(bare) ? bare.slice(0, -1) : bare;
}

function readCount(rest: string, reading: Reading): Intent {
  const of = /\b(?:in|of|does|do|has|have|under)\s+(?:the\s+)?(?:file\s+|folder\s+)?(⟦\d+⟧|"[^"]+"|\S+)/i.exec(
    rest.replace(/\bof code\b/i, ""),
  );
  const target = of ? plain(of[1] ?? "", reading) : "";
  const path = target !== "" && (isPath(target) || target.includes("*")) ? { of: target } : {};
  if (/^(?:\S+ )?lines?\b|\blines\b/i.test(rest)) return { kind: "count", what: "lines", ...path };
  if (/^(?:\S+ )?files?\b/i.test(rest)) {
    const ending = /^(\*?\.\w+|\w+) files?\b/i.exec(rest)?.[1];
    return { kind: "count", what: "files", ...(ending && !/^(?:the|all|source)$/i.test(ending) ? { of: ending } : path) };
  }
  const subject = subjectOf(
    rest.replace(/\s+(?:are there|are|do we have|is there|exist)\b.*$/i, "").replace(/\s+in (?:the|this|our) .*$/i, ""),
    reading,
  );
  return subject === "" ? { kind: "unknown", text: plain(rest, reading) } : { kind: "count", what: "matches", of: subject };
}

const unableVerb =
  /^(?:fix|write|add|create|implement|generate|delete|remove|update|improve|refactor|explain|document|rename|review|merge|deploy|install|translate|summari[sz]e|design|draft|commit|push|upgrade|migrate|optimi[sz]e|debug|change|replace|edit|make (?:it|the|a)|open a|set ?up|describe|should|do you think|what do you think|rewrite|suggest|recommend|plan|analy[sz]e|investigate|figure out)\b/i;
const strangeVerb = new RegExp(`^(?:${strangeVerbs})\\b`, "i");
/** Words end where no letter of any language follows: “testów” is not “test”. */
const testNoun = /(?<![\p{L}\p{N}_])(?:tests?(?![:.\w-])|test[- ]?suites?|testsuite|specs?|pruebas)(?![\p{L}\p{N}_])/iu;
const typeNoun = /\btype[- ]?check(?:er|ing|s)?\b|\bcheck (?:(?:that|if|whether) )?(?:the |our )?types\b/i;
const lintNoun = /\b(?:lint|linter|linting|eslint|code style|style check)\b/i;
const foreignTests = /^(?:f(?:ü|ue)hr|start|lass|mach|lance|ex[eé]cut|fais|ejecut|corre|lanza)\w*\b.*\b(?:tests?|pruebas)\b/i;
const generic = new Set(
  "the all our my your these those this that whole full entire complete project projects project's existing any failing failed current sample test of in run rerun re-run execute check only just every some new do does are is try start launch which what why how tell me verify see if whether pass kick off a app's repo's again also make sure please now show".split(
    " ",
  ),
);
const variants = new Set(["unit", "integration", "e2e", "smoke", "end-to-end", "acceptance"]);

function readProject(clause: string, reading: Reading): Intent[] | null {
  if (unableVerb.test(clause) || strangeVerb.test(clause)) return null;
  const project = (purpose: Purpose): Intent[] => {
    const where =
      /\b(?:in|inside|under)\s+(?:the\s+)?(?:folder\s+|directory\s+)?(⟦\d+⟧|"[^"]+"|\S+?)(?:\s+(?:folder|directory|package))?$/i.exec(
        clause,
      );
    const path = where ? plain(where[1] ?? "", reading) : "";
    const isPlace =
      path !== "" && !/^(?:this|the|here|it|project|repo|repository|workspace|folder|there|general|total|parallel)$/i.test(path);
    return [{ kind: "project", purpose, ...(isPlace ? { where: path.replace(/\/+$/, "") } : {}) }];
  };
  // "run the tests and the linter" asks for both, in this order.
  const found = (
    [
      ["typecheck", typeNoun],
      ["lint", lintNoun],
      ["test", testNoun],
      ["test", foreignTests],
    ] as const
  )
    .flatMap(([purpose, noun]) => {
      const at = noun.exec(clause)?.index;
      return at === undefined ? [] : [{ purpose, at }];
    })
    .sort((a, b) => a.at - b.at);
  if (found.length > 0)
    return found.flatMap(({ purpose }) => {
      const [one] = project(purpose);
      return one?.kind === "project" && purpose === "test"
        ? [{ ...one, ...testSubset(clause, one.where !== undefined, reading) }]
        : one
          ? [one]
          : [];
    });
  if (
    /^(?:re)?(?:build|compile)\b(?! (?:me |us )?(?:an?|some|new)\b)|^does (?:it|this|the \w+) (?:still )?(?:build|compile)\b|^(?:run|start|do|check)(?: if| whether| that)? (?:the |a )?build\b|^is the build\b/i.test(
      clause,
    )
  )
    return project("build");
  if (
    /^(?:what(?:'s|’s| is)? (?:fails|failing|broken|red)|what fails|is (?:it|anything|something) (?:broken|failing)|does (?:it|everything|anything) (?:work|pass|fail)|(?:run|check) (?:everything|all(?: of it)?))$/i.test(
      clause,
    )
  )
    return project("test");
  return null;
}

/** Which tests: `only the login tests`, `the tests for login`, `the unit tests`. */
function testSubset(clause: string, hasPlace: boolean, reading: Reading): { only?: string; variant?: string } {
  if (foreignTests.test(clause)) return {};
  const after =
    /\b(?:tests?|specs?)\s+(?:for|about|named|called|matching|of|on|with|that (?:match|contain|mention))\s+(?:the\s+)?(⟦\d+⟧|"[^"]+"|.+)$/i.exec(
      clause,
    )?.[1];
  if (after) return { only: plain(after.replace(/\s+(?:again|only)$/i, ""), reading) };
  const quotedName =
    /\btests?\s+("[^"]+"|“[^”]+”|⟦\d+⟧)/i.exec(clause)?.[1] ?? /("[^"]+"|“[^”]+”|⟦\d+⟧)\s+(?:unit )?(?:tests?|specs?)/i.exec(clause)?.[1];
  if (quotedName) return { only: plain(quotedName, reading) };
  const before = /^(.*?)\s*\b(?:tests?|test[- ]?suites?|testsuite|specs?)\b/i.exec(clause)?.[1] ?? "";
  const left = before.split(/\s+/).filter((word) => word !== "" && !generic.has(word.toLowerCase()));
  const variant = left.find((word) => variants.has(word.toLowerCase()))?.toLowerCase();
  const subject = left.filter((word) => !variants.has(word.toLowerCase())).join(" ");
  const isSubject = subject !== "" && words(subject) <= 4 && /^[\p{L}\p{N}_./:\s-]+$/u.test(subject) && !hasPlace;
  return { ...(isSubject ? { only: subject } : {}), ...(variant ? { variant: variant === "end-to-end" ? "e2e" : variant } : {}) };
}

/** `run test:unit`: one word that is no program. */
function readNamed(clause: string): Intent[] | null {
  const name = /^(?:run|rerun|execute)\s+(?:the\s+)?([a-z][\w:.-]*)(?:\s+(?:script|target|task|recipe|instead))?$/i.exec(clause)?.[1];
  return name && !/^(?:it|this|that|them|everything|all|something|anything|away|fast|again)$/i.test(name)
    ? [{ kind: "script", name }]
    : null;
}

function readRest(clause: string, reading: Reading): Intent {
  const text = plain(clause, reading);
  if (asksForReport(clause) && !clause.includes("⟦")) return { kind: "unknown", text: "" };
  if (
    unableVerb.test(clause) ||
    /^(?:find|search|look) (?:for )?(?:the |a |any |all )?\w+/i.test(clause) ||
    /^build (?:me |us )?(?:an?|some|new)\b/i.test(clause)
  )
    return { kind: "unable", what: text };
  return { kind: "unknown", text };
}
