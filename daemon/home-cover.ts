// What of the user's home a sandboxed command sees: an empty folder, with only the tools put back that builds and tests need.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { realIfThere } from "./home.ts";
import { isInside } from "./workspace-path.ts";

const run = promisify(execFile);

/** Tools that live in a home. No folder of this list holds credentials: those lie beside them, such as `.cargo/credentials`. */
const toolPlaces = [
  ".nvm",
  ".volta",
  ".fnm",
  ".local/share/fnm",
  ".nodenv",
  ".n",
  ".asdf",
  ".local/share/mise",
  ".pyenv",
  ".local/share/uv",
  ".local/share/pipx",
  ".local/lib",
  "miniconda3",
  ".rbenv",
  ".rustup",
  ".cargo/bin",
  ".cargo/registry",
  ".cargo/git",
  "go/bin",
  "go/pkg",
  "sdk",
  ".bun/bin",
  ".bun/install",
  ".deno",
  ".sdkman",
  ".jenv",
  ".dotnet",
  ".ghcup",
  ".local/bin",
  ".local/share/pnpm",
];

/** Secrets of the machine, which only a daemon that runs as root could read. */
const machineSecrets = [
  "/etc/shadow",
  "/etc/shadow-",
  "/etc/gshadow",
  "/etc/gshadow-",
  "/etc/krb5.keytab",
  "/etc/ssl/private",
  "/etc/wireguard",
  "/etc/NetworkManager/system-connections",
];

/** The homes of this user, of root and of everybody else. A home that is the whole machine cannot be covered. */
function homes(): string[] {
  const real = [homedir(), userInfo().homedir, "/root", "/home"].map(realIfThere);
  return [...new Set(real)].filter((path) => path !== null && path !== "/" && statSync(path).isDirectory()).sort() as string[];
}

/** The folders of PATH that lie in a home, and the library folder beside each: a tool unpacked there still runs. */
function pathPlaces(path: string, covered: readonly string[]): string[] {
  return path.split(":").flatMap((entry) => {
    const real = entry.startsWith("/") ? realIfThere(entry) : null;
    if (real === null || !covered.some((home) => isInside(home, real)) || !/^s?bin$|^shims$/.test(basename(real))) return [];
    const parent = dirname(real);
    return covered.includes(parent) ? [real] : [real, join(parent, "lib")];
  });
}

/** Covers a folder with an empty one, a file with nothing. */
export const mask = (path: string): string[] => (statSync(path).isDirectory() ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path]);

function masks(): string[] {
  const hostKeys = existsSync("/etc/ssh") ? readdirSync("/etc/ssh").filter((name) => /_key$/.test(name)) : [];
  const paths = [...machineSecrets, ...hostKeys.map((name) => join("/etc/ssh", name))].map(realIfThere);
  return paths.filter((path) => path !== null).flatMap(mask);
}

const gitIdentityFile = (daemonHome: string): string => join(daemonHome, "gitconfig");

/** Arguments of bwrap that cover the homes and bind back the tools. */
export function coverHomes(path: string, daemonHome: string): string[] {
  const covered = homes();
  const user = homedir();
  const realUser = realIfThere(user);
  const places = [...toolPlaces.map((place) => join(user, place)), "/home/linuxbrew/.linuxbrew", ...pathPlaces(path, covered)];
  const tools = new Set(places.map(realIfThere).filter((each) => each !== null && covered.some((home) => isInside(home, each))));
  const args = [...covered.flatMap((home) => ["--tmpfs", home]), ...[...tools].flatMap((each) => ["--ro-bind", `${each}`, `${each}`])];
  if (realUser !== null && realUser !== user && covered.some((home) => isInside(home, user))) args.push("--symlink", realUser, user);
  const identity = gitIdentityFile(daemonHome);
  if (realUser !== null && existsSync(identity)) args.push("--ro-bind", identity, join(realUser, ".gitconfig"));
  return [...args, ...masks()];
}

/** Keeps the owner's name and address for commits; the rest of their git configuration may hold keys and stays hidden. */
export async function keepGitIdentity(daemonHome: string): Promise<void> {
  const file = gitIdentityFile(daemonHome);
  rmSync(file, { force: true });
  for (const name of ["user.name", "user.email", "init.defaultBranch"]) {
    // Without git, or without a name, there is nothing to keep.
    const value = await run("git", ["config", "--global", "--get", name]).then(
      ({ stdout }) => stdout.trim(),
      () => "",
    );
    if (value !== "") await run("git", ["config", "--file", file, name, value]);
  }
}
