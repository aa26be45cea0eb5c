// Paths inside a granted folder. A path is followed to its real end first, and what was opened is checked again, so that a link that
// is swapped in between leads nowhere.
import { closeSync, constants, lstatSync, mkdirSync, openSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { Fault } from "../src/protocol/fault.ts";
import { isErrno } from "./home.ts";

/** Folders that are named in a list, but neither listed nor searched. */
export const skippedFolders: readonly string[] = [".git", "node_modules"];

/** True when `path` is `folder` itself or lies below it; both absolute and without links. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

const outside = (path: string): Fault => new Fault("forbidden", `${path} leads out of the granted folder.`);

/** The path as people know it: relative to the folder. */
export const shown = (root: string, path: string): string => relative(root, path) || ".";

const realOrNull = (path: string): string | null => {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    if (isErrno(error, "ELOOP", "ENOTDIR", "ENAMETOOLONG")) throw new Fault("bad_input", `${path} is not a usable path.`, { cause: error });
    throw error;
  }
};

function inside(root: string, path: string): string {
  if (path.includes("\0")) throw new Fault("bad_input", "A path holds a zero character.");
  const absolute = resolve(root, path);
  if (!isInside(root, absolute)) throw outside(path);
  return absolute;
}

/** Where an existing file or folder really is. */
export function existingPath(root: string, path: string): string {
  const real = realOrNull(inside(root, path));
  if (real === null) throw new Fault("not_found", `There is no ${path}.`);
  if (!isInside(root, real)) throw outside(path);
  return real;
}

/** Where a file is or will be; its missing folders are made. */
export function writablePath(root: string, path: string): string {
  const absolute = inside(root, path);
  const real = realOrNull(absolute);
  if (real !== null) {
    if (!isInside(root, real)) throw outside(path);
    return real;
  }
  if (lstatSync(absolute, { throwIfNoEntry: false })) throw new Fault("forbidden", `${path} is a link to something that does not exist.`);
  const missing: string[] = [];
  let parent = dirname(absolute);
  let realParent = realOrNull(parent);
  while (realParent === null && isInside(root, parent) && parent !== root) {
    if (lstatSync(parent, { throwIfNoEntry: false })) throw new Fault("forbidden", `${path} goes through a link that leads nowhere.`);
    missing.unshift(basename(parent));
    parent = dirname(parent);
    realParent = realOrNull(parent);
  }
  if (realParent === null || !isInside(root, realParent)) throw outside(path);
  const folder = join(realParent, ...missing);
  if (missing.length > 0) mkdirSync(folder, { recursive: true });
  return join(folder, basename(absolute));
}

/** Opens a real path without following a last link, and checks what was opened. Close the descriptor. */
export function openChecked(root: string, real: string, flags: number, mode = 0o644): number {
  let fd: number;
  try {
    // O_NONBLOCK: opening a named pipe must not hang the daemon.
    fd = openSync(real, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, mode);
  } catch (error) {
    if (isErrno(error, "ELOOP")) throw outside(shown(root, real));
    if (isErrno(error, "EACCES", "EPERM", "EROFS"))
      throw new Fault("forbidden", `${shown(root, real)} may not be opened by the daemon's user.`, { cause: error });
    throw error;
  }
  try {
    const opened = process.platform === "linux" ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync(real);
    if (!isInside(root, opened)) throw outside(shown(root, real));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Runs `use` with a path to the opened and checked folder: on Linux through its descriptor, so that it cannot be swapped. */
export function inFolder<T>(root: string, folder: string, use: (path: string) => T): T {
  const fd = openChecked(root, folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return use(process.platform === "linux" ? `/proc/self/fd/${fd}` : folder);
  } finally {
    closeSync(fd);
  }
}
