// The thread behind search.ts: walks the folder, never through a link, and posts one answer.
import { closeSync, constants, fstatSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import * as z from "zod/mini";
import { messageOf } from "../src/protocol/fault.ts";
import { globMatcher } from "./glob.ts";
import { isErrno } from "./home.ts";
import { inFolder, openChecked, shown, skippedFolders } from "./workspace-path.ts";

const maxMatches = 200;
const maxLineChars = 300;
const maxSearchedFileBytes = 4 * 1024 * 1024;

const input = z.object({ root: z.string(), top: z.string(), query: z.string(), glob: z.nullable(z.string()) }).parse(workerData);

/** A file that is no text, too large, or not ours to read is left out. */
function textOf(path: string): string | null {
  let fd: number;
  try {
    fd = openChecked(input.root, path, constants.O_RDONLY);
  } catch {
    return null;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > maxSearchedFileBytes) return null;
    const bytes = readFileSync(fd);
    return bytes.subarray(0, 8192).includes(0) ? null : bytes.toString("utf8");
  } finally {
    closeSync(fd);
  }
}

function* filesBelow(path: string): Generator<string> {
  let entries: { name: string; folder: boolean; file: boolean }[];
  try {
    entries = inFolder(input.root, path, (folder) =>
      readdirSync(folder, { withFileTypes: true }).map((each) => ({ name: each.name, folder: each.isDirectory(), file: each.isFile() })),
    );
  } catch (error) {
    if (isErrno(error, "ENOTDIR")) yield path;
    return;
  }
  for (const each of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (each.file) yield join(path, each.name);
    else if (each.folder && !skippedFolders.includes(each.name)) yield* filesBelow(join(path, each.name));
  }
}

function search(pattern: RegExp): string {
  const wanted = input.glob === null ? () => true : globMatcher(input.glob);
  const matches: string[] = [];
  let files = 0;
  for (const path of filesBelow(input.top)) {
    const name = shown(input.root, path);
    if (!wanted(name, basename(path))) continue;
    const text = textOf(path);
    if (text === null) continue;
    files++;
    for (const [i, line] of text.split("\n").entries()) {
      if (!pattern.test(line)) continue;
      if (matches.length >= maxMatches)
        return `${matches.join("\n")}\n[cut after ${maxMatches} matches; give a path, a glob or a narrower pattern]\n`;
      matches.push(`${name}:${i + 1}:${line.length > maxLineChars ? `${line.slice(0, maxLineChars)}…` : line.replace(/\r$/, "")}`);
    }
  }
  return matches.length === 0 ? `No match in ${files} ${files === 1 ? "file" : "files"}.\n` : `${matches.join("\n")}\n`;
}

function answer(): { text: string } | { problem: string } {
  let pattern: RegExp;
  try {
    pattern = new RegExp(input.query);
  } catch (error) {
    return { problem: `That is not a regular expression: ${messageOf(error)}.` };
  }
  return { text: search(pattern) };
}

parentPort?.postMessage(answer());
