// The Worker with single statements changed, as a bundle of its own: what a part of the design is worth is seen by leaving it out.
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

/** What comes while a turn reads waits for the next turn, as in the essay. */
export const wholeTurns: SourceChange = {
  name: "whole-turns",
  file: "durable-objects/router-steps.ts",
  from: "if (!tainted) talk.add(joinTurn(",
  to: "if (Date.now() < 0) talk.add(joinTurn(",
};

/** Throws when a statement is not there exactly once: then this would measure something else. */
export async function bundleChanged(...changes: readonly SourceChange[]): Promise<string> {
  const name = changes.map((change) => change.name).join("-");
  const changed = new Map<string, string>();
  for (const { file, from, to } of changes) {
    const source = await readFile(path.join(root, file), "utf8");
    if (source.split(from).length !== 2) throw new Error(`${file} does not hold "${from}" exactly once.`);
    changed.set(path.join(root, file), source.replace(from, to));
  }
  return bundleWorker("src/index.ts", path.join(root, "dist", name, "index.js"), [
    {
      name,
      setup: (build) =>
        build.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
          const contents = changed.get(file);
          return contents === undefined ? undefined : { contents, loader: "ts" };
        }),
    },
  ]);
}
