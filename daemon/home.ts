// The daemon's home folder: where its files lie, and how they are written so that a crash leaves the old or the new one.
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Fault } from "../src/protocol/fault.ts";

export type Home = {
  dir: string;
  identity: string;
  policy: string;
  journal: string;
  lock: string;
  status: string;
  output: string;
  old: string;
};

/** Opens (and makes, 0700) the home folder. */
export function openHome(dir: string = join(homedir(), ".switchyard")): Home {
  const path = resolve(dir);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) !== 0) throw new Fault("forbidden", `${path} can be read by others; run: chmod 700 ${path}`);
  return {
    dir: path,
    identity: join(path, "identity.json"),
    policy: join(path, "policy.json"),
    journal: join(path, "journal"),
    lock: join(path, "lock"),
    status: join(path, "status.json"),
    output: join(path, "output"),
    old: join(path, "old"),
  };
}

/** A rename is durable only once its folder is. */
export function syncFolder(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Replaces a file as a whole: temporary file, fsync, rename, fsync of the folder. */
export function writeWhole(path: string, text: string): void {
  const temporary = `${path}.new`;
  const fd = openSync(temporary, "w", 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/** The file's text, or null when there is none. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

/** Where a path really is, or null when there is nothing. */
export const realIfThere = (path: string): string | null => (existsSync(path) ? realpathSync(path) : null);

export const isErrno = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));
