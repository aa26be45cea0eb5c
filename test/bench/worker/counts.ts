// What the counted Worker hands out: everything that the platform bills, for each kind of object, since the counts were last taken.

export type ObjectCounts = {
  /** Rows of its own SQLite, an index's rows included. */
  rowsRead: number;
  rowsWritten: number;
  /** Each is billed as a row. */
  alarmsSet: number;
  alarmsRun: number;
  /** Calls from outside, by method; `fetch` and socket messages too. */
  calls: Record<string, number>;
  socketMessages: number;
  /** With a call or a message under way, summed over objects. */
  activeMs: number;
  /** How often the constructor ran: an object that was put away and came back. */
  constructed: number;
};

export type Counts = {
  objects: Record<string, ObjectCounts>;
  /** Alarms that are set and have not rung, each with how long after it was set it rings. */
  waiting: { kind: string; afterMs: number }[];
  requests: number;
  d1: { queries: number; rowsRead: number; rowsWritten: number };
  r2: { writes: number; reads: number };
};

export const noObjectCounts = (): ObjectCounts => ({
  rowsRead: 0,
  rowsWritten: 0,
  alarmsSet: 0,
  alarmsRun: 0,
  calls: {},
  socketMessages: 0,
  activeMs: 0,
  constructed: 0,
});

export const noCounts = (): Counts => ({
  objects: {},
  waiting: [],
  requests: 0,
  d1: { queries: 0, rowsRead: 0, rowsWritten: 0 },
  r2: { writes: 0, reads: 0 },
});

export const countsPath = "/bench/counts";
