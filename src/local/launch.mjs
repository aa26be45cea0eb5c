// The door of every npm script: plain JavaScript that any Node reads, so that an old Node or a missing install is one line and no stack trace.
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const problem = !existsSync(path.join(root, "node_modules/workerd"))
  ? 'Its packages are not installed yet. Run "npm ci" first.'
  : major < 22 || (major === 22 && minor < 18)
    ? `This needs Node 22.18 or newer and runs on ${process.versions.node}. "npm ci" brings one along: run it, then start through npm ("npm start", "npm test", "npm run daemon").`
    : null;

if (problem !== null) {
  console.error(problem);
  process.exit(1);
}
const target = path.resolve(root, process.argv[2] ?? "");
process.argv = [process.argv[0] ?? "node", target, ...process.argv.slice(3)];
await import(pathToFileURL(target).href);
