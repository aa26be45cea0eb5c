// What the router's log says of the last days: what models read and wrote, and how often it acted. Nothing is written for it: the rows
// are read when somebody looks, from the first one of the time that is asked for.
import { type Spending, spentByTask } from "../core/costs.ts";
import { acting } from "../core/router-plan.ts";
import type { RouterSpent, Spent } from "../protocol/costs.ts";

/** `offsetMs`: by how much the days begin before those of UTC. At most `maxRows` rows are read, the newest. */
export type DaysAsked = { sinceMs: number; offsetMs: number; maxRows: number };

const timeAt = (sql: SqlStorage, seq: number): number | null =>
  sql.exec<{ at_ms: number }>("SELECT at_ms FROM log WHERE seq >= ? ORDER BY seq LIMIT 1", seq).toArray()[0]?.at_ms ?? null;

/** The first row that is not older: rows stand in the order of their times, so that a look at a few finds it. */
function firstSince(sql: SqlStorage, sinceMs: number, head: number): number {
  let low = 1;
  let high = head + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((timeAt(sql, middle) ?? Number.POSITIVE_INFINITY) < sinceMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function stretchOf(sql: SqlStorage, { sinceMs, maxRows }: DaysAsked): { from: number; fromMs: number; cut: boolean } {
  const head = sql.exec<{ head: number | null }>("SELECT MAX(seq) AS head FROM log").one().head ?? 0;
  const first = firstSince(sql, sinceMs, head);
  const from = Math.max(first, head + 1 - maxRows);
  return from === first ? { from, fromMs: sinceMs, cut: false } : { from, fromMs: timeAt(sql, from) ?? sinceMs, cut: true };
}

/** The router's own calls, by day and model. A probe is a call like any other. */
const routerCalls = `SELECT CAST((at_ms + ?) / 86400000 AS INTEGER) AS day, json_extract(body, '$.model') AS model, COUNT(*) AS calls,
  SUM(json_extract(body, '$.usage.inputTokens') IS NULL) AS untold,
  IFNULL(SUM(json_extract(body, '$.usage.inputTokens')), 0) AS inputTokens,
  IFNULL(SUM(json_extract(body, '$.usage.outputTokens')), 0) AS outputTokens
  FROM log WHERE seq >= ? AND (kind = 'router.model' AND json_extract(body, '$.phase') = 'settle'
    OR kind = 'router.probe' AND json_extract(body, '$.error') IS NULL)
  GROUP BY 1, 2 ORDER BY 1, 2`;

const spentColumns = ["calls", "inputTokens", "outputTokens"] as const;
const spentIn = (wrap: (column: string) => string): string =>
  spentColumns.map((name) => `${wrap(`json_extract(body, '$.report.spent.${name}')`)} AS ${name}`).join(", ");

const taskReports = `SELECT json_extract(body, '$.report.taskId') AS taskId, json_extract(body, '$.report.title') AS title, at_ms AS atMs,
  ${spentIn((column) => column)}
  FROM log WHERE seq >= ? AND kind = 'router.report' AND json_extract(body, '$.report.spent') IS NOT NULL ORDER BY seq`;

/** A report's key is its id, which begins with the id of its task. */
const reportBefore = `SELECT ${spentIn((column) => `IFNULL(MAX(${column}), 0)`)} FROM log WHERE key > ? AND key < ? AND seq < ?`;

function readSpent(sql: SqlStorage, from: number, offsetMs: number): Pick<Spent, "router" | "tasks"> {
  const router = sql.exec<RouterSpent>(routerCalls, offsetMs, from).toArray();
  const reports = sql.exec<Spending>(taskReports, from).toArray();
  const before = new Map(
    [...new Set(reports.map(({ taskId }) => taskId))].map((taskId) => {
      const key = taskId.replace(/^tsk_/, "rep_");
      return [taskId, sql.exec<Pick<Spending, (typeof spentColumns)[number]>>(reportBefore, `${key}-`, `${key}.`, from).one()];
    }),
  );
  return { router, tasks: spentByTask(reports, before, offsetMs) };
}

/** [RD14] As the table of its days counts it, which has only days of UTC. What it began with nobody's asking is no act. */
const acts = `SELECT COUNT(*) AS acts, IFNULL(SUM(json_extract(body, '$.unasked') IS NOT NULL), 0) AS unasked FROM log
  WHERE seq >= ?1 AND kind = 'router.decision' AND json_extract(body, '$.by') = 'model'
    AND json_extract(body, '$.tool') IN (${acting.map((tool) => `'${tool}'`).join(", ")})
    AND json_array_length(body, '$.settles') > 0
    AND IFNULL(json_extract(body, '$.taskId'), '') || at_ms NOT IN
      (SELECT json_extract(body, '$.taskId') || at_ms FROM log WHERE seq >= ?1 AND kind = 'router.speculation')`;

/** What was spent and done since then. */
export function readDays(sql: SqlStorage, asked: DaysAsked): Spent & { asked: number; unasked: number } {
  const { from, fromMs, cut } = stretchOf(sql, asked);
  const did = sql.exec<{ acts: number; unasked: number }>(acts, from).one();
  return { fromMs, cut, ...readSpent(sql, from, asked.offsetMs), asked: did.acts - did.unasked, unasked: did.unasked };
}
