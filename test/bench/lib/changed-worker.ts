// The Worker with one statement changed, as a bundle of its own: what a part of the design is worth is seen by leaving it out.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { bundleWorker, root } from "../../../src/local/worker.ts";

export type SourceChange = { name: string; file: string; from: string; to: string };

/** A subscription ends with the rows that were there when it began: whatever comes later is the router's to hand over. `?4` is the cut. */
export const withoutPassThrough: SourceChange = {
  name: "without-pass-through",
  file: "src/storage/thread-store.ts",
  from: "VALUES (?, ?, ?, ?, ?, NULL, ?)",
  to: "VALUES (?, ?, ?, ?, ?, ?4, ?)",
};

/** Throws when the statement is not there exactly once: then this would measure something else. */
export async function bundleChanged(change: SourceChange): Promise<string> {
  const changed = path.join(root, change.file);
  const source = await readFile(changed, "utf8");
  if (source.split(change.from).length !== 2) throw new Error(`${change.file} does not hold "${change.from}" exactly once.`);
  const contents = source.replace(change.from, change.to);
  return bundleWorker("src/index.ts", path.join(root, "dist", change.name, "index.js"), [
    {
      name: change.name,
      setup: (build) => build.onLoad({ filter: /\.ts$/ }, ({ path: file }) => (file === changed ? { contents, loader: "ts" } : undefined)),
    },
  ]);
}
