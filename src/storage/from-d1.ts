// The doors' way to D1: its failures are a passing state that people are told of, never a raw error.

import { logFault } from "../log-fault.ts";
import { asFault, Fault } from "../protocol/fault.ts";
import { withTimeout } from "../timeout.ts";
import { migrated } from "./migrations.ts";

/** Longer than any sane statement: whoever waits at a door should hear that it does not work. */
const d1TimeoutMs = 8_000;

/** Work on the migrated database. What D1 itself fails at is `unavailable`; a fault of the work keeps its own sentence. */
export async function fromD1<T>(db: D1Database, work: (db: D1Database) => Promise<T>): Promise<T> {
  try {
    return await withTimeout(
      migrated(db).then(() => work(db)),
      d1TimeoutMs,
      "D1",
    );
  } catch (error) {
    const fault = asFault(error);
    if (fault && fault.kind !== "timeout") throw fault;
    logFault("d1", error);
    throw new Fault("unavailable", "The database cannot be reached right now. Try again in a minute.", { cause: error });
  }
}
