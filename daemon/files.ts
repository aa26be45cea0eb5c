// The file commands. Each returns the text that becomes the command's output; a Fault becomes exit code 1 with its reason.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  opendirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import type { CommandSpec, PushSpec } from "../src/protocol/command.ts";
import { Fault } from "../src/protocol/fault.ts";
import { limits } from "../src/protocol/limits.ts";
import { isErrno } from "./home.ts";
import { searchFiles } from "./search.ts";
import { existingPath, inFolder, openChecked, shown, skippedFolders, writablePath } from "./workspace-path.ts";

export type FileSpec = Exclude<CommandSpec, { kind: "shell" } | PushSpec>;

/** A file is read as a whole before lines are picked from it. */
const maxReadableBytes = 32 * 1024 * 1024;
const maxListed = 1_000;

/** Carries out one file command in a granted folder. */
export async function runFileCommand(root: string, spec: FileSpec, signal: AbortSignal): Promise<string> {
  switch (spec.kind) {
    case "read_file":
      return readLines(root, spec.path, spec.offset ?? 1, spec.limit ?? null);
    case "write_file":
      return writeFile(root, spec.path, spec.content);
    case "edit_file":
      return editFile(root, spec);
    case "list_files":
      return listFiles(root, spec.path ?? ".", spec.depth ?? null);
    case "search_files":
      return await searchFiles(root, existingPath(root, spec.path ?? "."), spec, signal);
  }
}

/** The text of a file; refuses what is not text. */
function readText(root: string, real: string): { text: string; mode: number } {
  const name = shown(root, real);
  const fd = openChecked(root, real, constants.O_RDONLY);
  try {
    const stat = fstatSync(fd);
    if (stat.isDirectory()) throw new Fault("bad_input", `${name} is a folder; use list_files.`);
    if (!stat.isFile()) throw new Fault("bad_input", `${name} is not a regular file.`);
    if (stat.size > maxReadableBytes)
      throw new Fault("too_large", `${name} has ${stat.size} bytes, too many to read whole; use a shell command such as sed -n '1,200p'.`);
    const bytes = readFileSync(fd);
    if (bytes.includes(0)) throw new Fault("bad_input", `${name} is not a text file (${bytes.length} bytes, with zero bytes in it).`);
    try {
      return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), mode: stat.mode & 0o777 };
    } catch (cause) {
      throw new Fault("bad_input", `${name} is not a text file in UTF-8 (${bytes.length} bytes).`, { cause });
    }
  } finally {
    closeSync(fd);
  }
}

/** `offset` is the number of the first line, from 1. What does not fit is said in a last line of its own. */
function readLines(root: string, path: string, offset: number, limit: number | null): string {
  const { text } = readText(root, existingPath(root, path));
  const lines = text.split(/(?<=\n)/);
  const first = Math.max(1, Math.floor(offset));
  if (first > Math.max(1, lines.length)) throw new Fault("bad_input", `${path} has only ${lines.length} lines.`);
  let last = first - 1;
  let bytes = 0;
  for (const line of lines.slice(first - 1, limit === null ? undefined : first - 1 + Math.max(1, Math.floor(limit)))) {
    bytes += Buffer.byteLength(line);
    if (bytes > limits.maxFileBytes) break;
    last++;
  }
  if (last < first && text !== "")
    throw new Fault(
      "too_large",
      `Line ${first} of ${path} alone has more than ${limits.maxFileBytes} bytes; use a shell command such as cut -c.`,
    );
  const picked = lines.slice(first - 1, last).join("");
  if (last >= lines.length || text === "") return picked;
  return `${picked.endsWith("\n") ? picked : `${picked}\n`}[lines ${first} to ${last} of ${lines.length}; go on with offset ${last + 1}]\n`;
}

/** Replaces a file in one step: a reader sees the old or the new one, never a half. */
function replace(root: string, real: string, text: string, mode: number | null): void {
  inFolder(root, dirname(real), (folder) => {
    const target = join(folder, basename(real));
    const temporary = join(folder, `.switchyard-${randomBytes(8).toString("hex")}.tmp`);
    const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o644);
    try {
      const bytes = Buffer.from(text, "utf8");
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
      if (mode !== null) fchmodSync(fd, mode);
      fsyncSync(fd);
      renameSync(temporary, target);
    } catch (error) {
      unlinkSync(temporary);
      throw error;
    } finally {
      closeSync(fd);
    }
  });
}

function writable(root: string, path: string): string {
  const real = writablePath(root, path);
  // Hooks and configuration in there run outside the sandbox, when the owner uses git. Some file systems know no case.
  if (shown(root, real).toLowerCase().split(sep).includes(".git"))
    throw new Fault("forbidden", `${path} belongs to git; use git commands for it.`);
  return real;
}

function modeIfThere(root: string, real: string): number | null {
  try {
    const fd = openChecked(root, real, constants.O_RDONLY);
    try {
      const stat = fstatSync(fd);
      if (stat.isDirectory()) throw new Fault("bad_input", `${shown(root, real)} is a folder.`);
      if (!stat.isFile()) throw new Fault("bad_input", `${shown(root, real)} is not a regular file.`);
      return stat.mode & 0o777;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

function writeFile(root: string, path: string, content: string): string {
  const bytes = Buffer.byteLength(content);
  if (bytes > limits.maxFileBytes)
    throw new Fault("too_large", `The content has ${bytes} bytes; ${limits.maxFileBytes} is the most that is written at once.`);
  const real = writable(root, path);
  const mode = modeIfThere(root, real);
  replace(root, real, content, mode);
  return `${mode === null ? "wrote" : "replaced"} ${shown(root, real)} (${bytes} bytes)\n`;
}

function editFile(root: string, spec: Extract<FileSpec, { kind: "edit_file" }>): string {
  existingPath(root, spec.path);
  const real = writable(root, spec.path);
  const { text, mode } = readText(root, real);
  const parts = text.split(spec.old);
  const found = parts.length - 1;
  if (found === 0)
    throw new Fault("not_found", `The text to replace does not occur in ${spec.path}; read the file again, it must match exactly.`);
  if (found > 1 && spec.all !== true)
    throw new Fault(
      "conflict",
      `The text to replace occurs ${found} times in ${spec.path}; give more of what stands around it, or set all.`,
    );
  replace(root, real, parts.join(spec.new), mode);
  return `replaced ${found} ${found === 1 ? "place" : "places"} in ${shown(root, real)}\n`;
}

/** Breadth first, so that a list that is cut still shows the upper levels; printed in order of path. */
function listFiles(root: string, path: string, depth: number | null): string {
  const top = existingPath(root, path);
  const found: string[] = [];
  const folders: { path: string; level: number }[] = [{ path: top, level: 1 }];
  let cut = false;
  for (let folder = folders.shift(); folder && !cut; folder = folders.shift()) {
    const { path: here, level } = folder;
    for (const each of readFolder(root, here)) {
      if (found.length >= maxListed) {
        cut = true;
        break;
      }
      const full = join(here, each.name);
      const name = shown(root, full);
      if (each.isFolder && skippedFolders.includes(each.name)) found.push(`${name}/ (not listed)`);
      else if (each.isFolder) {
        found.push(`${name}/`);
        if (depth === null || level < depth) folders.push({ path: full, level: level + 1 });
      } else found.push(each.link === null ? name : `${name} -> ${each.link}`);
    }
  }
  if (found.length === 0) return "(empty)\n";
  const note = cut ? `[cut after ${maxListed} entries; give a path or a smaller depth]\n` : "";
  return `${found.sort().join("\n")}\n${note}`;
}

type FolderEntry = { name: string; isFolder: boolean; link: string | null };

function readFolder(root: string, path: string): FolderEntry[] {
  try {
    return inFolder(root, path, (folder) => {
      const entries: FolderEntry[] = [];
      const dir = opendirSync(folder);
      try {
        // A few more than are shown are enough to know that the list is cut.
        for (let each = dir.readSync(); each && entries.length <= maxListed; each = dir.readSync())
          entries.push({
            name: each.name,
            isFolder: each.isDirectory(),
            link: each.isSymbolicLink() ? readlinkSync(join(folder, each.name)) : null,
          });
      } finally {
        dir.closeSync();
      }
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    });
  } catch (error) {
    if (isErrno(error, "ENOTDIR")) throw new Fault("bad_input", `${shown(root, path)} is a file; use read_file.`, { cause: error });
    // A folder that vanished while the list was made, or that this user may not read, is listed without content.
    if (isErrno(error, "ENOENT", "EACCES")) return [];
    if (error instanceof Fault && error.kind === "forbidden" && path !== root) return [];
    throw error;
  }
}
