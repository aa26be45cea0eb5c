// Gate rules in D1: each saved version whole, the highest in force. The gate judges also while D1 is away.
import * as z from "zod/mini";
import { defaultRules } from "../core/gate.ts";
import type { RulesVersion } from "../protocol/console.ts";
import { Fault } from "../protocol/fault.ts";
import { type GateRule, type GateRules, gateRule } from "../protocol/gate.ts";
import { InForce } from "./in-force.ts";

/** Versions that are listed; each older one is still stored and can be read by its number. */
const listedVersions = 50;

/** A rule set is walked for each event and stored in one D1 row. */
const maxRules = 500;

/** Words that all rules together look for, and the length of one: the gate looks for each of them in each event. */
const maxWords = 1_000;
const maxWordChars = 100;

const ruleList = z.array(gateRule).check(
  z.maxLength(maxRules, `must hold at most ${maxRules} rules`),
  z.refine((rules) => new Set(rules.map((rule) => rule.id)).size === rules.length, "must not use a rule id twice"),
);

/** The rules in force as D1 has them now, for whoever is about to change them: nothing is cached, and a fault when they cannot be read. */
export async function currentRules(db: D1Database): Promise<GateRules> {
  const row = await db
    .prepare("SELECT version, rules FROM gate_rules ORDER BY version DESC LIMIT 1")
    .first<{ version: number; rules: string }>();
  return row === null ? defaultRules : { version: row.version, rules: ruleList.parse(JSON.parse(row.rules)) };
}

const inForce = new InForce<GateRules>("gate-rules", currentRules, defaultRules);

/** The rules in force, at most about 10 s old. While D1 is away: the last known ones, else the defaults. */
export const rulesInForce = (db: D1Database, nowMs: number): Promise<GateRules> => inForce.get(db, nowMs);

/**
 * Saves a changed set as the next version. `edited.version` is the version that was edited: when another one was saved
 * meanwhile, nothing is written and the caller hears `conflict`.
 */
export async function saveRules(db: D1Database, edited: GateRules, by: string, nowMs: number): Promise<GateRules> {
  const checked = checkRules(edited.rules);
  const rules: GateRules = { version: edited.version + 1, rules: checked };
  const insert = db
    .prepare(
      "INSERT INTO gate_rules (version, rules, saved_by, saved_ms) SELECT ?1 + 1, ?2, ?3, ?4 WHERE (SELECT COALESCE(MAX(version), 0) FROM gate_rules) = ?1",
    )
    .bind(edited.version, JSON.stringify(checked), by, nowMs);
  await inForce.save(db, insert, "rules", rules);
  return rules;
}

/** Puts a rule before all others, in the place of an older one of its id, as the next version. Repeated, it changes nothing. */
export async function putRuleFirst(db: D1Database, rule: GateRule, by: string, nowMs: number): Promise<void> {
  const { version, rules } = await currentRules(db);
  if (JSON.stringify(rules[0]) === JSON.stringify(rule)) return;
  await saveRules(db, { version, rules: [rule, ...rules.filter(({ id }) => id !== rule.id)] }, by, nowMs);
}

/** The rules without one of them, as the next version; the rule that went, or null when there was none. */
export async function removeRule(db: D1Database, id: string, by: string, nowMs: number): Promise<GateRule | null> {
  const { version, rules } = await currentRules(db);
  const gone = rules.find((rule) => rule.id === id);
  if (gone === undefined) return null;
  await saveRules(db, { version, rules: rules.filter((rule) => rule !== gone) }, by, nowMs);
  return gone;
}

/** What may be saved: what was saved under wider limits is still read. */
const savedList = ruleList.check(
  z.refine(
    (rules) => rules.reduce((sum, { anyWord = [] }) => sum + anyWord.length, 0) <= maxWords,
    `must look for at most ${maxWords} words in all`,
  ),
  z.refine(
    (rules) => rules.every(({ anyWord = [] }) => anyWord.every((word) => word.length <= maxWordChars)),
    `must look for words of at most ${maxWordChars} characters`,
  ),
);

/** The list as it may be stored; throws a sentence that names what is wrong with it. */
export function checkRules(rules: unknown): GateRule[] {
  const parsed = savedList.safeParse(rules);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const [index, ...rest] = issue?.path ?? [];
  const where = typeof index === "number" ? `Rule ${index + 1}${rest.length > 0 ? `, ${rest.join(".")}` : ""}` : "The list of rules";
  throw new Fault("bad_input", `${where}: ${issue?.message ?? "is not valid"}. Nothing was saved.`);
}

/** The newest versions, the one in force first; what ships is the last of them. */
export async function listRules(db: D1Database): Promise<RulesVersion[]> {
  const { results } = await db
    .prepare(
      "SELECT version, json_array_length(rules) AS rules, saved_by AS savedBy, saved_ms AS savedMs FROM gate_rules ORDER BY version DESC LIMIT ?",
    )
    .bind(listedVersions)
    .all<RulesVersion>();
  return [...results, { version: 0, rules: defaultRules.rules.length, savedBy: null, savedMs: null }];
}

/** A version by its number; null when there is none. */
export async function rulesOfVersion(db: D1Database, version: number): Promise<GateRules | null> {
  if (version === 0) return defaultRules;
  const row = await db.prepare("SELECT rules FROM gate_rules WHERE version = ?").bind(version).first<{ rules: string }>();
  return row && { version, rules: ruleList.parse(JSON.parse(row.rules)) };
}
