// Policies in D1: each saved version whole, the highest of a policy in force; and what people say of decisions.
import type { PolicyMarks } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import type { Policy, PolicyInput, SavedPolicy } from "../protocol/policy.ts";
import type { RouterRpc } from "../protocol/rpc.ts";
import type { SavedIn, SpeculationSetting } from "../protocol/speculation.ts";
import { InForce } from "./in-force.ts";

/** The router's model reads all that are on. */
const maxEnabled = 30;

const columns = "id, version, text, enabled, saved_by AS savedBy, saved_ms AS savedMs, speculation, saved_in AS savedIn";
type Row = Omit<SavedPolicy, "enabled" | "speculation" | "savedIn"> & {
  enabled: number;
  speculation: string | null;
  savedIn: string | null;
};
const toPolicy = ({ speculation, savedIn, ...row }: Row): SavedPolicy => ({
  ...row,
  enabled: row.enabled === 1,
  ...(savedIn === null ? {} : { savedIn: JSON.parse(savedIn) as SavedIn }),
  ...(speculation === null ? {} : { speculation: JSON.parse(speculation) as SpeculationSetting }),
});

const inForce = new InForce<Policy[]>(
  "policies",
  async (db) =>
    (await listPolicies(db)).filter(({ enabled }) => enabled).map(({ enabled: _, savedBy: _by, savedMs: _at, ...policy }) => policy),
  [],
);

/** The policies that are on, by id, at most about 10 s old. While D1 is away: the last known ones. */
export const policiesInForce = (db: D1Database, nowMs: number): Promise<Policy[]> => inForce.get(db, nowMs);

/** The newest version of each policy, by id. */
export async function listPolicies(db: D1Database): Promise<SavedPolicy[]> {
  const { results } = await db
    .prepare(`SELECT ${columns} FROM policies AS p WHERE version = (SELECT MAX(version) FROM policies WHERE id = p.id) ORDER BY id`)
    .all<Row>();
  return results.map(toPolicy);
}

/** Every version of one policy, the newest first. */
export async function policyVersions(db: D1Database, id: string): Promise<SavedPolicy[]> {
  const { results } = await db.prepare(`SELECT ${columns} FROM policies WHERE id = ? ORDER BY version DESC LIMIT 50`).bind(id).all<Row>();
  return results.map(toPolicy);
}

/**
 * Saves the next version of a policy; `conflict` when another one was saved since the version that was edited. `savedIn`: the conversation
 * in which an owner saved it.
 */
export async function savePolicy(
  db: D1Database,
  input: PolicyInput,
  by: string,
  nowMs: number,
  savedIn: SavedIn | null = null,
): Promise<SavedPolicy> {
  const others = (await listPolicies(db)).filter(({ id, enabled }) => enabled && id !== input.id);
  if (input.enabled && others.length >= maxEnabled)
    throw new Fault("bad_input", `At most ${maxEnabled} policies can be on: switch one off first.`);
  const { id, version, text, enabled, speculation } = input;
  const insert = db
    .prepare(
      "INSERT INTO policies (id, version, text, enabled, saved_by, saved_ms, speculation, saved_in) SELECT ?1, ?2 + 1, ?3, ?4, ?5, ?6, ?7, ?8 WHERE (SELECT COALESCE(MAX(version), 0) FROM policies WHERE id = ?1) = ?2",
    )
    .bind(
      ...[id, version, text, enabled ? 1 : 0, by, nowMs],
      ...[speculation ?? null, savedIn].map((part) => (part === null ? null : JSON.stringify(part))),
    );
  await inForce.save(db, insert, "this policy");
  const allows = speculation === undefined ? {} : { speculation };
  return { id, version: version + 1, text, enabled, ...allows, ...(savedIn === null ? {} : { savedIn }), savedBy: by, savedMs: nowMs };
}

export type Mark = {
  decisionId: string;
  policyId: string | null;
  wrong: boolean;
  unasked: boolean;
  note: string;
  by: string;
  atMs: number;
};

/** A person's word on a decision, from the console or the widget. */
export async function markDecision(
  db: D1Database,
  router: Pick<RouterRpc, "events">,
  word: Pick<Mark, "decisionId" | "wrong" | "note" | "by" | "atMs">,
): Promise<void> {
  const logged = await router.events({ afterSeq: 0, limit: 50, about: word.decisionId });
  const decided = logged
    .map(({ event }) => event)
    .find((event) => event.kind === "router.decision" && event.decisionId === word.decisionId);
  if (decided?.kind !== "router.decision") throw new Fault("not_found", "There is no such decision.");
  await saveMark(db, { ...word, policyId: decided.policy?.id ?? null, unasked: decided.unasked === true });
}

/** The last one counts, in whatever order they come. */
async function saveMark(db: D1Database, mark: Mark): Promise<void> {
  await db
    .prepare(
      "INSERT INTO decision_marks (decision_id, policy_id, wrong, unasked, note, marked_by, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (decision_id) DO UPDATE SET wrong = excluded.wrong, note = excluded.note, marked_by = excluded.marked_by, at_ms = excluded.at_ms WHERE excluded.at_ms >= decision_marks.at_ms",
    )
    .bind(mark.decisionId, mark.policyId, mark.wrong ? 1 : 0, mark.unasked ? 1 : 0, mark.note, mark.by, mark.atMs)
    .run();
}

export async function markOf(db: D1Database, decisionId: string): Promise<Mark | null> {
  const row = await db
    .prepare(
      "SELECT decision_id AS decisionId, policy_id AS policyId, wrong, unasked, note, marked_by AS by, at_ms AS atMs FROM decision_marks WHERE decision_id = ?",
    )
    .bind(decisionId)
    .first<Omit<Mark, "wrong" | "unasked"> & { wrong: number; unasked: number }>();
  return row && { ...row, wrong: row.wrong === 1, unasked: row.unasked === 1 };
}

/** Since a time: decisions that people called wrong, of those that nobody had asked for; outcomes that people accepted and rejected. */
export async function peoplesWords(db: D1Database, sinceMs: number): Promise<{ wrongUnasked: number; accepted: number; rejected: number }> {
  const [marks, tasks] = await Promise.all([
    db
      .prepare("SELECT COUNT(*) AS wrongUnasked FROM decision_marks WHERE wrong = 1 AND unasked = 1 AND at_ms >= ?")
      .bind(sinceMs)
      .first<{ wrongUnasked: number }>(),
    db
      .prepare(
        "SELECT IFNULL(SUM(json_extract(card, '$.accepted') = 1), 0) AS accepted, IFNULL(SUM(json_extract(card, '$.accepted') = 0), 0) AS rejected FROM tasks WHERE updated_ms >= ?",
      )
      .bind(sinceMs)
      .first<{ accepted: number; rejected: number }>(),
  ]);
  return { wrongUnasked: marks?.wrongUnasked ?? 0, accepted: tasks?.accepted ?? 0, rejected: tasks?.rejected ?? 0 };
}

/** How often a decision by each policy was called wrong. */
export async function policyMarks(db: D1Database): Promise<PolicyMarks[]> {
  const { results } = await db
    .prepare("SELECT policy_id AS policyId, SUM(wrong) AS wrong, COUNT(*) AS marked FROM decision_marks GROUP BY policy_id")
    .all<PolicyMarks>();
  return results;
}
