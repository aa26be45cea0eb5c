// Builds that are broken on purpose, one or more for each invariant that must never be lost unnoticed. Each is one change of one
// place, and the tests that carry the invariant's id must fail on it.

export type Mutant = {
  invariant: string;
  /** What the broken build does, as a sentence. */
  does: string;
  file: string;
  /** Occurs exactly once in the file. */
  from: string;
  to: string;
  /** The project and the files in which tests of the invariant are run. */
  project: "pure" | "workerd";
  tests: string[];
};

export const mutants: Mutant[] = [
  {
    invariant: "R1",
    does: "A thread arms no alarm for what it accepted, so that a crash before the hand-over forgets it.",
    file: "src/storage/thread-room.ts",
    from: 'this.alarms.setEarlier("after", nowMs + afterMs);',
    to: "",
    project: "workerd",
    tests: ["test/workerd/thread.test.ts"],
  },
  {
    invariant: "R1",
    does: "The router acknowledges rows and keeps none of them.",
    file: "durable-objects/router.ts",
    from: "if (!this.#store.inbox.takes(triggerId, { releasedBy, again })) continue;",
    to: "if (item.attempts >= 0) continue;",
    project: "workerd",
    tests: ["test/workerd/router-crash.test.ts"],
  },
  {
    invariant: "R3",
    does: "A thread takes a delivery that it has already.",
    file: "src/core/thread.ts",
    from: 'if (input.knownSeq !== null) return { do: "duplicate", seq: input.knownSeq };',
    to: "",
    project: "pure",
    tests: ["test/core/thread.test.ts"],
  },
  {
    invariant: "R5",
    does: "A thread hands rows over with the newest first.",
    file: "src/storage/thread-delivery.ts",
    from: "rows: rows.map((row) => ({ row, alsoWith: alsoWith(",
    to: "rows: rows.toReversed().map((row) => ({ row, alsoWith: alsoWith(",
    project: "workerd",
    tests: ["test/workerd/thread.test.ts"],
  },
  {
    invariant: "R5",
    does: "An edit that comes before its original is a row at once.",
    file: "src/core/thread-editions.ts",
    from: '? { do: "hold" } : { do: "take" };',
    to: '? { do: "take" } : { do: "take" };',
    project: "pure",
    tests: ["test/core/thread-editions.test.ts"],
  },
  {
    invariant: "R7",
    does: "Of the subscribers of a thread only the first gets its rows.",
    file: "src/storage/thread-delivery.ts",
    from: "...new Set(tasks),",
    to: "...new Set(tasks.slice(0, 1)),",
    project: "workerd",
    tests: ["test/workerd/thread.test.ts", "test/workerd/subscriptions.test.ts"],
  },
  {
    invariant: "R9",
    does: "What was on its way in a crash is sent again instead of looked up.",
    file: "src/core/outbound.ts",
    from: 'if (entry.inFlight) return { do: "find" };',
    to: 'if (entry.inFlight) return { do: "send" };',
    project: "pure",
    tests: ["test/core/outbound.test.ts"],
  },
  {
    invariant: "R9",
    does: "A send without an answer counts as a refusal that may be tried again.",
    file: "src/core/outbound.ts",
    from: 'return { ...entry, state: "unknown", inFlight: false, dueMs: Math.max(',
    to: 'return { ...entry, state: "pending", inFlight: false, dueMs: Math.max(',
    project: "workerd",
    tests: ["test/workerd/thread.test.ts"],
  },
  {
    invariant: "R12",
    does: "A command that a machine accepted and no longer knows is sent to it again.",
    file: "src/core/endpoint.ts",
    from: 'else if (entry.state !== "queued") forgotten(draft, entry);',
    to: 'else if (entry.state !== "queued") unarrived(draft, entry);',
    project: "pure",
    tests: ["test/core/endpoint.test.ts"],
  },
  {
    invariant: "R12",
    does: "A command is committed as started again and again, whatever the machine says of it.",
    file: "src/core/endpoint.ts",
    from: 'else if (entry.state === "sent") unarrived(draft, entry);',
    to: 'else if (entry.state === "sent" || entry.state === "started") unarrived(draft, entry);',
    project: "workerd",
    tests: ["test/workerd/endpoint-crash.test.ts"],
  },
  {
    invariant: "R18",
    does: "A worker commits the answer of a call that another one has replaced.",
    file: "durable-objects/worker-loop.ts",
    from: 'if (task.open.kind !== "calling" || task.lease.epoch !== epoch) {',
    to: 'if (task.open.kind !== "calling") {',
    project: "workerd",
    tests: ["test/workerd/worker-crash.test.ts"],
  },
  {
    invariant: "R18",
    does: "A call that is repeated after a crash is another step, so that an answer of it follows none.",
    file: "src/core/worker-session.ts",
    from: 'next.open = { kind: "calling", step, attempts: facts.lost ? attempts + 1 : attempts, retryAtMs: null };',
    to: 'next.open = { kind: "calling", step: step + 1, attempts: facts.lost ? attempts + 1 : attempts, retryAtMs: null };',
    project: "workerd",
    tests: ["test/workerd/worker-crash.test.ts"],
  },
];
