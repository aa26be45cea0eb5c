// The requests that the offline model knows, and their names for people.

export type Purpose = "test" | "build" | "lint" | "typecheck";

export type Intent =
  /** `unsure`: it destroys, and nobody said to run it: people are asked first. */
  | { kind: "command"; script: string; cwd?: string; unsure?: true }
  | { kind: "project"; purpose: Purpose; only?: string; where?: string; variant?: string }
  /** A named script, target or recipe of the project: `test:unit`. */
  | { kind: "script"; name: string }
  | { kind: "search"; query: string; where?: string }
  | { kind: "find_files"; pattern: string }
  | { kind: "list"; path?: string }
  | { kind: "read"; path: string }
  | { kind: "count"; what: "lines" | "files" | "matches"; of?: string }
  | { kind: "changes"; since?: string; commits?: number; uncommitted?: boolean }
  | { kind: "again" }
  | { kind: "stop"; target: string }
  | { kind: "status" }
  | { kind: "greeting" }
  | { kind: "thanks" }
  | { kind: "help" }
  /** Understood, and beyond this model. */
  | { kind: "unable"; what: string }
  | { kind: "unknown"; text: string };

export type WorkIntent = Extract<
  Intent,
  { kind: "command" | "project" | "script" | "search" | "find_files" | "list" | "read" | "count" | "changes" }
>;

const workKinds: readonly string[] = ["command", "project", "script", "search", "find_files", "list", "read", "count", "changes"];
export const isWork = (intent: Intent): intent is WorkIntent => workKinds.includes(intent.kind);

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const cut = (text: string, chars: number): string =>
  text.length > chars
    ? `${Array.from(text)
        .slice(0, chars - 1)
        .join("")}…`
    : text;

const purposeWords: Record<Purpose, string> = {
  test: "run the tests",
  build: "build the project",
  lint: "run the linter",
  typecheck: "check the types",
};

/** The work in a few words, for titles and reports. */
export function describe(intent: WorkIntent): string {
  switch (intent.kind) {
    case "command":
      return `run ${intent.script.split("\n")[0] ?? ""}`;
    case "project": {
      const base =
        intent.purpose === "test" && (intent.only || intent.variant)
          ? `run the ${[intent.variant, intent.only].filter(Boolean).join(" ")} tests`
          : purposeWords[intent.purpose];
      return intent.where ? `${base} in ${intent.where}` : base;
    }
    case "script":
      return `run ${intent.name}`;
    case "search":
      return `search for "${intent.query}"${intent.where ? ` in ${intent.where}` : ""}`;
    case "find_files":
      return `find files named ${intent.pattern}`;
    case "list":
      return intent.path ? `list the files in ${intent.path}` : "list the files";
    case "read":
      return `read ${intent.path}`;
    case "count":
      return intent.what === "matches" ? `count "${intent.of ?? ""}"` : `count ${intent.what}${intent.of ? ` in ${intent.of}` : ""}`;
    case "changes":
      return intent.uncommitted
        ? "show what is not committed"
        : `show what changed${intent.since ? ` since ${intent.since.replace(" 00:00", "")}` : ""}`;
  }
}

/** A title for one or several of them, at most 100 characters. */
export const titleOf = (intents: readonly WorkIntent[]): string =>
  cut(capital(intents.map(describe).join(", then ")).replace(/\s+/g, " "), 100);
