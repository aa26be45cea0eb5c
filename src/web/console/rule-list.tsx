// The gate's rules source by source; what differs in its kind of event only is one line until somebody unfolds it.
import { useSignal } from "@preact/signals";
import type { GateRule } from "../../protocol/gate.ts";
import { type Outcome, outcomes } from "../../protocol/trigger.ts";
import { ChevronIcon } from "../shared/icons.tsx";
import { Empty, FindField } from "./parts.tsx";
import {
  conditionsOf,
  familiesOf,
  findRules,
  moved,
  outcomeWords,
  type PlacedRule,
  type RuleSection,
  sectionsOf,
  sourceName,
} from "./rules-model.ts";

/** So many lines are read as fast as the one that stands for them. */
const smallFamily = 2;

type Changes = { onEdit: (at: number) => void; onMove: (at: number, by: 1 | -1) => void; onRemove: (at: number) => void };

export function RuleList(props: {
  rules: readonly GateRule[];
  /** How many of the recent triggers each matched, by id; null while nothing was tried. */
  matched: Record<string, number> | null;
  onEdit: (at: number) => void;
  onChange: (rules: GateRule[]) => void;
}) {
  const { rules, matched, onEdit, onChange } = props;
  const words = useSignal("");
  const only = useSignal<Outcome | null>(null);
  /** Sections that are folded, and families that are not. */
  const turned = useSignal<ReadonlySet<string>>(new Set());
  const turn = (key: string) => {
    const next = new Set(turned.value);
    if (!next.delete(key)) next.add(key);
    turned.value = next;
  };
  const found = findRules(rules, words.value, only.value);
  const sections = sectionsOf(found);
  const changes: Changes = {
    onEdit,
    onMove: (at, by) => onChange(moved(rules, at, by)),
    onRemove: (at) => onChange(rules.toSpliced(at, 1)),
  };
  return (
    <>
      <div class="rule-find">
        <FindField label="Find a rule" words={words} />
        <fieldset class="filters">
          <legend class="hidden-visually">Show rules of one outcome</legend>
          {outcomes.map((outcome) => (
            <button
              key={outcome}
              type="button"
              class="btn"
              aria-pressed={only.value === outcome}
              onClick={() => {
                only.value = only.value === outcome ? null : outcome;
              }}
            >
              {outcomeWords[outcome]}
              <span class="count">{findRules(rules, words.value, outcome).length}</span>
            </button>
          ))}
        </fieldset>
        <p class="hidden-visually" role="status">
          {found.length} of {rules.length} rules
        </p>
      </div>
      {found.length === 0 ? <Empty>No rule holds that.</Empty> : null}
      {sections.map((section, at) => (
        <Section
          key={`${section.source} ${at}`}
          section={section}
          id={`rules-${at}`}
          // Whoever looks for words wants to see them.
          families={words.value.trim() === "" ? familiesOf(section.rules) : section.rules.map((placed) => [placed])}
          matched={matched}
          turned={turned.value}
          onTurn={turn}
          changes={changes}
        />
      ))}
    </>
  );
}

function Section(props: {
  section: RuleSection;
  id: string;
  families: readonly PlacedRule[][];
  matched: Record<string, number> | null;
  turned: ReadonlySet<string>;
  onTurn: (key: string) => void;
  changes: Changes;
}) {
  const { section, id, families, matched, turned, onTurn, changes } = props;
  const open = !turned.has(id);
  return (
    <section aria-labelledby={`${id}-name`}>
      <h3 class="rule-section">
        <button
          type="button"
          id={`${id}-name`}
          class="btn btn-bare"
          aria-expanded={open}
          aria-controls={`${id}-list`}
          onClick={() => onTurn(id)}
        >
          <ChevronIcon open={open} />
          {sourceName(section.source)}
          <span class="count">{section.rules.length}</span>
        </button>
      </h3>
      <ol class="list" id={`${id}-list`} hidden={!open}>
        {families.flatMap((family) => {
          const key = family[0]?.rule.id ?? "";
          const folded = family.length > smallFamily && !turned.has(key);
          return [
            family.length > smallFamily ? (
              <FamilyRow key={`family ${key}`} family={family} matched={matched} open={!folded} onTurn={() => onTurn(key)} />
            ) : null,
            ...(folded
              ? []
              : family.map(({ rule, at }) => (
                  <RuleRow
                    key={rule.id}
                    rule={rule}
                    matched={matched?.[rule.id] ?? 0}
                    inFamily={family.length > smallFamily}
                    onEdit={() => changes.onEdit(at)}
                    onMove={(by) => changes.onMove(at, by)}
                    onRemove={() => changes.onRemove(at)}
                  />
                ))),
          ];
        })}
      </ol>
    </section>
  );
}

/** Its section says the source. */
const conditionsHere = ({ source: _source, ...rest }: GateRule): string => conditionsOf(rest);

const Matched = (props: { count: number }) => (props.count === 0 ? null : <> · matched {props.count} of the recent triggers</>);

function FamilyRow(props: { family: readonly PlacedRule[]; matched: Record<string, number> | null; open: boolean; onTurn: () => void }) {
  const { family, matched, open, onTurn } = props;
  const [first] = family;
  if (first === undefined) return null;
  const { kind: _kind, ...shared } = first.rule;
  const conditions = conditionsHere(shared);
  const word = open ? "Fold" : `Show ${family.length}`;
  return (
    <li class="rule-row">
      <span class={`rule-outcome rule-${first.rule.outcome}`}>{outcomeWords[first.rule.outcome]}</span>
      <span class="rule-text">
        <span dir="auto">{first.rule.reason}</span>
        <span class="muted fine-print">
          {family.length} kinds of event
          {conditions === "everything" ? null : (
            <>
              {" · "}
              <span class="mono">{conditions}</span>
            </>
          )}
          <Matched count={family.reduce((sum, { rule }) => sum + (matched?.[rule.id] ?? 0), 0)} />
        </span>
      </span>
      <span class="row-buttons">
        <button type="button" class="btn btn-bare" aria-expanded={open} aria-label={`${word}: ${first.rule.reason}`} onClick={onTurn}>
          {word}
          <ChevronIcon open={open} />
        </button>
      </span>
    </li>
  );
}

function RuleRow(props: {
  rule: GateRule;
  matched: number;
  /** Its reason stands above, once for all. */
  inFamily: boolean;
  onEdit: () => void;
  onMove: (by: 1 | -1) => void;
  onRemove: () => void;
}) {
  const { rule, matched, inFamily } = props;
  return (
    <li class="rule-row">
      {inFamily ? <span /> : <span class={`rule-outcome rule-${rule.outcome}`}>{outcomeWords[rule.outcome]}</span>}
      <span class="rule-text">
        {inFamily ? null : <span dir="auto">{rule.reason}</span>}
        <span class="muted fine-print">
          <span class="mono">{inFamily ? rule.kind : conditionsHere(rule)}</span>
          <Matched count={matched} />
        </span>
      </span>
      <span class="row-buttons">
        <button type="button" class="btn btn-bare" aria-label={`Move ${rule.id} up`} onClick={() => props.onMove(-1)}>
          ↑
        </button>
        <button type="button" class="btn btn-bare" aria-label={`Move ${rule.id} down`} onClick={() => props.onMove(1)}>
          ↓
        </button>
        <button type="button" class="btn btn-bare" aria-label={`Edit ${rule.id}`} onClick={props.onEdit}>
          Edit
        </button>
        <button type="button" class="btn btn-bare" aria-label={`Remove ${rule.id}`} onClick={props.onRemove}>
          Remove
        </button>
      </span>
    </li>
  );
}
