// Figures of a set: what was expected beside what became of it.
import { type Label, labels } from "./labelled.ts";
import type { Became, Outcome } from "./outcome.ts";

/** The share of messages in which the agent may speak or act of its own accord although silence was expected. */
export const maxFalseProactive = 0.02;

/** Of all lines, and of those that expect silence. */
type Loud = { lines: number; share: number; ofSilent: number | null };

export type Figures = {
  lines: number;
  confusion: Record<Label, Record<Became, number>>;
  /** Of what became an act (an answer), the share that was to be one; of what was to be one, the share that became one. Null: there was none. */
  act: { precision: number | null; recall: number | null };
  answer: { precision: number | null; recall: number | null };
  /** Answered or acted although nobody had addressed it and silence was expected. */
  falseProactive: Loud;
  /** Answered or acted although it was only named, and silence was expected. */
  misheard: Loud;
  /** Work started where only words were asked for. */
  actedForAnswer: number;
  /** Of the addressed lines that ask for something, those that got an act or an answer. */
  heard: number | null;
  /** Of the lines in which nobody asked and an act or an answer is right, those that got one. */
  proactive: number | null;
  undecided: number;
  mistakesByCause: Record<string, number>;
  tokens: { input: number; cached: number; output: number; lines: number };
};

const share = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

export function figuresOf(outcomes: readonly Outcome[]): Figures {
  const confusion = Object.fromEntries(labels.map((label) => [label, { act: 0, answer: 0, silent: 0, none: 0 }])) as Figures["confusion"];
  for (const { line, became } of outcomes) confusion[line.expected][became]++;
  const of = (label: "act" | "answer") => ({
    precision: share(
      confusion[label][label],
      labels.reduce((sum, expected) => sum + confusion[expected][label], 0),
    ),
    recall: share(
      confusion[label][label],
      Object.values(confusion[label]).reduce((a, b) => a + b, 0),
    ),
  });
  const isLoud = ({ became }: Outcome): boolean => became === "act" || became === "answer";
  const quiet = outcomes.filter(({ line }) => line.expected === "silent");
  const loudOf = (addressed: boolean): Loud => {
    const loud = quiet.filter((outcome) => outcome.line.addressed === addressed && isLoud(outcome)).length;
    return { lines: loud, share: loud / Math.max(1, outcomes.length), ofSilent: share(loud, quiet.length) };
  };
  const asked = outcomes.filter(({ line }) => line.addressed && line.expected !== "silent");
  const unasked = outcomes.filter(({ line }) => line.proactive);
  const causes: Record<string, number> = {};
  for (const outcome of mistakesOf(outcomes)) causes[causeOf(outcome)] = (causes[causeOf(outcome)] ?? 0) + 1;
  const used = outcomes.flatMap(({ usage }) => usage ?? []);
  return {
    lines: outcomes.length,
    confusion,
    act: of("act"),
    answer: of("answer"),
    falseProactive: loudOf(false),
    misheard: loudOf(true),
    actedForAnswer: confusion.answer.act,
    heard: share(asked.filter(isLoud).length, asked.length),
    proactive: share(unasked.filter(isLoud).length, unasked.length),
    undecided: outcomes.filter(({ became }) => became === "none").length,
    mistakesByCause: Object.fromEntries(Object.entries(causes).sort(([, a], [, b]) => b - a)),
    tokens: {
      input: used.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
      cached: used.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0),
      output: used.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
      lines: used.length,
    },
  };
}

export const mistakesOf = (outcomes: readonly Outcome[]): Outcome[] => outcomes.filter(({ line, became }) => became !== line.expected);

/** Who has to be taught: the policy that was followed, else the rule that let it through or held it back. */
const causeOf = ({ line, became, rule, policy }: Outcome): string =>
  `${policy === null ? `rule ${rule}` : `policy ${policy}`}: ${line.expected} → ${became}`;

const percent = (value: number | null): string => (value === null ? "–" : `${(value * 100).toFixed(1)} %`);
const short = (text: string, chars: number): string => {
  const plain = text.replace(/\s+/g, " ");
  return plain.length <= chars ? plain : `${plain.slice(0, chars - 1).toWellFormed()}…`;
};

const loud = ({ lines, share: all, ofSilent }: Loud): string =>
  `${percent(all)} of all (${lines}; ${percent(ofSilent)} of what expects silence)`;

/** For people. */
export function report(name: string, figures: Figures, outcomes: readonly Outcome[]): string {
  const { confusion, act, answer, falseProactive, misheard, tokens } = figures;
  const columns: Became[] = ["act", "answer", "silent", "none"];
  const held = falseProactive.share <= maxFalseProactive;
  const mistakes = mistakesOf(outcomes);
  return [
    `\n${name}: ${figures.lines} messages`,
    `  expected ↓   ${columns.map((column) => (column === "none" ? "undecided" : column).padStart(10)).join("")}`,
    ...labels.map((label) => `  ${label.padEnd(12)} ${columns.map((column) => String(confusion[label][column]).padStart(10)).join("")}`),
    `  acting       precision ${percent(act.precision)}, recall ${percent(act.recall)}`,
    `  answering    precision ${percent(answer.precision)}, recall ${percent(answer.recall)}`,
    `  false proactive  ${loud(falseProactive)}${held ? "" : `: more than ${percent(maxFalseProactive)}`}`,
    `  only named, and answered  ${loud(misheard)}`,
    `  acted where words were asked for  ${figures.actedForAnswer}`,
    `  heard        ${percent(figures.heard)} of what was asked of it got an act or an answer`,
    `  proactive    ${percent(figures.proactive)} of what it was to see by itself`,
    ...(tokens.lines === 0
      ? []
      : [`  tokens       ${tokens.input} read (${tokens.cached} of them cached), ${tokens.output} written, for ${tokens.lines} messages`]),
    `  mistakes by cause`,
    ...Object.entries(figures.mistakesByCause).map(([cause, count]) => `    ${String(count).padStart(3)}  ${cause}`),
    `  mistakes`,
    ...mistakes.map(
      ({ line, became, rule, policy, what }) =>
        `    ${line.id} ${line.expected} → ${became}  [${policy ?? rule}] ${short(line.text, 60)}${what === "" ? "" : `  ⇒ ${short(what, 90)}`}`,
    ),
  ].join("\n");
}
