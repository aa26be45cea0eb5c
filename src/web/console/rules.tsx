// The gate's rules: read, change in a draft, try the draft on what came lately, save it, or go back to an older version.
import { signal, useSignal } from "@preact/signals";
import type { LimitsAnswer, RulesAnswer, RulesTrial } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import type { GateRule, GateRules } from "../../protocol/gate.ts";
import { outcomes } from "../../protocol/trigger.ts";
import { Ago, Answer, Empty, headingOf, Id, Panel, useAnswer } from "./parts.tsx";
import { Policies } from "./policies.tsx";
import { RuleDialog } from "./rule-form.tsx";
import { RuleList } from "./rule-list.tsx";
import { outcomeWords } from "./rules-model.ts";
import { api, question, say } from "./store.ts";

/** A draft outlives a look at another page: it is gone only when it is saved or dropped. */
const draft = signal<GateRules | null>(null);
const trial = signal<RulesTrial | null>(null);

const change = (rules: GateRule[], version: number) => {
  draft.value = { version, rules };
  trial.value = null;
};

const complain = (error: unknown) => say(messageOf(error));

/** What stands below the rules, which are many. */
const parts = ["Policies", "What leaves by itself", "Work that nobody asked for", "Versions"];

export function RulesPage() {
  const reads = useSignal(0);
  const answer = useAnswer<RulesAnswer>("rules", reads.value);
  return (
    <div class="stack">
      <nav class="row-buttons" aria-label="On this page">
        {parts.map((title) => (
          <button key={title} type="button" class="btn btn-bare" onClick={() => document.getElementById(headingOf(title))?.focus()}>
            {title}
          </button>
        ))}
      </nav>
      <Answer of={answer}>
        {(known) => (
          <>
            {trial.value === null ? null : <Tried of={trial.value} />}
            <Rules known={known} onSaved={() => reads.value++} />
          </>
        )}
      </Answer>
      <Policies />
      {answer.kind === "here" ? <Versions known={answer.value} onSaved={() => reads.value++} /> : null}
      <Limited />
    </div>
  );
}

function Rules(props: { known: RulesAnswer; onSaved: () => void }) {
  const { inForce } = props.known;
  const edited = useSignal<{ at: number | null } | null>(null);
  const { version, rules } = draft.value ?? inForce;
  const at = edited.value?.at ?? null;
  const attempt = async () => {
    try {
      trial.value = await api<RulesTrial>("POST", "rules/try", { rules });
    } catch (error) {
      complain(error);
    }
  };
  const save = async () => {
    try {
      const saved = await api<GateRules>("POST", "rules", { version, rules });
      draft.value = null;
      trial.value = null;
      say(`Version ${saved.version} is in force.`);
      props.onSaved();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <Panel
      title="Rules"
      count={rules.length}
      aside={
        <span class="row-buttons rule-tools">
          <span class="muted">version {inForce.version} in force</span>
          <button
            type="button"
            class="btn"
            onClick={() => {
              edited.value = { at: null };
            }}
          >
            New rule
          </button>
        </span>
      }
    >
      <div class="steps">
        <p>
          Each event meets these rules from the top; the first that fits decides, before any model runs. A task that follows a thread sees
          what happens there whatever the rules say, except what is muted.
        </p>
      </div>
      {draft.value === null ? null : (
        <div class="rule-draft" role="status">
          <p>
            {version === inForce.version
              ? "This is a draft: nothing of it is in force yet."
              : `This draft began at version ${version}; somebody saved version ${inForce.version} meanwhile. Drop it and make the change again.`}
          </p>
          <p class="row-buttons">
            <button type="button" class="btn" onClick={() => void attempt()}>
              What would it have done?
            </button>
            <button type="button" class="btn btn-main" onClick={() => void save()}>
              Save as version {version + 1}
            </button>
            <button
              type="button"
              class="btn btn-bare"
              onClick={() => {
                draft.value = null;
                trial.value = null;
              }}
            >
              Drop the draft
            </button>
          </p>
        </div>
      )}
      <RuleList
        rules={rules}
        matched={trial.value?.matched ?? null}
        onEdit={(place) => {
          edited.value = { at: place };
        }}
        onChange={(next) => change(next, version)}
      />
      {edited.value === null ? null : (
        <RuleDialog
          rule={at === null ? null : (rules[at] ?? null)}
          taken={rules.filter((_, index) => index !== at).map(({ id }) => id)}
          onClose={() => {
            edited.value = null;
          }}
          onKeep={(rule) => {
            // A new rule goes to the top: there it decides.
            change(at === null ? [rule, ...rules] : rules.with(at, rule), version);
            edited.value = null;
          }}
        />
      )}
    </Panel>
  );
}

function Tried(props: { of: RulesTrial }) {
  const { tried, before, after, changed } = props.of;
  if (tried === 0)
    return (
      <Panel title="What it would have done">
        <Empty>Nothing came lately that could be tried. Recent triggers are kept for a while, so try again later today.</Empty>
      </Panel>
    );
  return (
    <Panel title="What it would have done" count={changed.length}>
      <dl class="facts">
        {outcomes.map((outcome) => (
          <div key={outcome}>
            <dt class="muted">{outcomeWords[outcome]}</dt>
            <dd>{before[outcome] === after[outcome] ? before[outcome] : `${before[outcome]} → ${after[outcome]}`}</dd>
          </div>
        ))}
      </dl>
      {changed.length === 0 ? (
        <Empty>Of the last {tried} triggers none would have been treated differently.</Empty>
      ) : (
        <ul class="list plain" aria-label="Triggers that would have been treated differently">
          {changed.toReversed().map(({ trigger, before: was, after: would }) => (
            <li key={trigger.id}>
              <p>
                <span class={`rule-outcome rule-${was.outcome}`}>{outcomeWords[was.outcome]}</span> →{" "}
                <span class={`rule-outcome rule-${would.outcome}`}>{outcomeWords[would.outcome]}</span>{" "}
                <span class="muted">
                  {trigger.kind} by {trigger.principal.name} in {trigger.place}, <Ago atMs={trigger.atMs} />
                </span>
              </p>
              {trigger.text === "" ? null : (
                <p class="rule-sample" dir="auto">
                  {trigger.text.slice(0, 160)}
                </p>
              )}
              <p class="muted fine-print">
                {was.rule} → {would.rule} · <Id id={trigger.id} />
              </p>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** Places that brought more than the door lets in; nothing is shown while there are none. */
function Limited() {
  const answer = useAnswer<LimitsAnswer>("rules/limits");
  if (answer.kind !== "here" || answer.value.limited.length === 0) return null;
  return (
    <Panel title="Asked to wait" count={answer.value.limited.length}>
      <ul class="list plain">
        {answer.value.limited.map(({ source, place, sender, refused, lastMs }) => (
          <li key={`${source} ${place} ${sender}`}>
            {source} · {place}{" "}
            <span class="muted">
              {sender === "" ? "" : `${sender}, `}
              {refused} events were told to come back later, the last <Ago atMs={lastMs} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Versions(props: { known: RulesAnswer; onSaved: () => void }) {
  const { inForce, versions } = props.known;
  const look = async (version: number) => {
    try {
      change((await api<GateRules>("GET", `rules/${version}`)).rules, inForce.version);
      say(`The draft is version ${version} now. Try it, or save it.`);
    } catch (error) {
      complain(error);
    }
  };
  const revert = (to: number) => {
    question.value = {
      title: `Go back to version ${to}?`,
      text: `Its rules are saved as version ${inForce.version + 1} and are in force at once. The versions between stay in this list.`,
      yes: "Go back to it",
      run: async () => {
        try {
          await api("POST", "rules/revert", { version: inForce.version, to });
          draft.value = null;
          trial.value = null;
          say(`The rules of version ${to} are in force.`);
          props.onSaved();
        } catch (error) {
          complain(error);
        }
      },
    };
  };
  return (
    <Panel title="Versions" count={versions.length}>
      <ul class="list">
        {versions.map(({ version, rules, savedBy, savedMs }) => (
          <li class="machine-row" key={version}>
            <span class="machine-text">
              <span>
                Version {version} <span class="muted">· {rules} rules</span>
              </span>
              <span class="muted fine-print">
                {savedMs === null ? (
                  "what ships"
                ) : (
                  <>
                    saved by {savedBy} <Ago atMs={savedMs} />
                  </>
                )}
              </span>
            </span>
            {version === inForce.version ? (
              <span class="muted">in force</span>
            ) : (
              <span class="row-buttons">
                <button type="button" class="btn btn-bare" aria-label={`As a draft: version ${version}`} onClick={() => void look(version)}>
                  As a draft
                </button>
                <button type="button" class="btn" aria-label={`Go back to version ${version}`} onClick={() => revert(version)}>
                  Go back
                </button>
              </span>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
