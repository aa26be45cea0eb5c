// The Test Anything Protocol: node:test, bats, prove and many shell scripts speak it.
import { type Failure, failure, indentOf, type Reader } from "./reading.ts";

export const tap: Reader = {
  runner: "TAP",
  read(lines) {
    if (!lines.some((line) => /^\d+\.\.\d+(?:\s|$)/.test(line) || /^TAP version \d+/.test(line))) return null;
    const failed: Failure[] = [];
    let passed = 0;
    let skipped = 0;
    lines.forEach((line, i) => {
      const match = /^(\s*)(not )?ok\b(?:\s+\d+)?(?:\s*-)?\s*(.*)$/.exec(line);
      if (!match) return;
      const rest = match[3] ?? "";
      const directive = /(?:^|[^\\])#\s*(todo|skip)\b/i.exec(rest)?.[1]?.toLowerCase();
      const yaml = yamlBlock(lines, i + 1);
      if (/^type: '?suite/m.test(yaml) || (match[2] && /subtestsFailed/.test(yaml))) return;
      if (directive === "skip") skipped += 1;
      else if (!match[2]) passed += 1;
      else if (directive === undefined)
        failed.push(failure(unescapeTap(rest) || `test ${failed.length + passed + 1}`, tapDetail(lines, i + 1, yaml)));
    });
    return { failed, failedCount: failed.length, passed, skipped };
  },
};

const unescapeTap = (text: string): string => text.replace(/ # (?:time=|in ).*$/i, "").replace(/\\([#\\])/g, "$1");

function yamlBlock(lines: readonly string[], at: number): string {
  if (lines[at]?.trim() !== "---") return "";
  const indent = indentOf(lines[at] ?? "");
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => line.trim() === "...");
  return rest
    .slice(0, end < 0 ? 30 : end)
    .map((line) => line.slice(indent))
    .join("\n");
}

function tapDetail(lines: readonly string[], at: number, yaml: string): string | undefined {
  const message = /^(?:error|message): *(?:'((?:[^']|'')*)'|"(.*)"|(\|-?|>-?)|(.+))$/m.exec(yaml);
  if (message?.[3]) {
    const block = yaml.slice(message.index).split("\n").slice(1);
    const text: string[] = [];
    for (const line of block) {
      if (line.trim() !== "" && indentOf(line) < 2) break;
      if (line.trim() !== "") text.push(line.trim());
    }
    return text
      .slice(0, 2)
      .filter((line) => /\w/.test(line))
      .join(" ");
  }
  if (message) return (message[1] ?? message[2] ?? message[4])?.replaceAll("''", "'");
  if (yaml !== "") return undefined;
  const comment = /^\s*#\s+(.+)$/.exec(lines[at] ?? "")?.[1];
  // bats writes where, then what: `# (in test file a.bats, line 3)`.
  return comment?.startsWith("(") ? (/^\s*#\s+(.+)$/.exec(lines[at + 1] ?? "")?.[1] ?? comment) : comment;
}
