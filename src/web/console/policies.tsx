// Policies in plain language: what the router's model is told about when to act and when to be quiet.
import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { PoliciesAnswer } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import { type PolicyInput, policyInput, type SavedPolicy } from "../../protocol/policy.ts";
import { Ago, Answer, Dialog, Empty, FormEnd, Panel, useAnswer } from "./parts.tsx";
import { ReleasePanel } from "./releases.tsx";
import { SpeculationPanel } from "./speculation.tsx";
import { firstSetting, placesOf, placesText } from "./speculation-model.ts";
import { api, say } from "./store.ts";

export function Policies() {
  const reads = useSignal(0);
  const edited = useSignal<PolicyInput | null>(null);
  const answer = useAnswer<PoliciesAnswer>("policies", reads.value);
  /** What was wrong with it; null when it is saved. */
  const save = async (policy: PolicyInput): Promise<string | null> => {
    try {
      await api("POST", "policies", policy);
      reads.value++;
      say(`Version ${policy.version + 1} of ${policy.id} is ${policy.enabled ? "in force" : "saved, and off"}.`);
      return null;
    } catch (error) {
      return messageOf(error);
    }
  };
  const edit = (policy: PolicyInput) => {
    edited.value = policy;
  };
  return (
    <>
      <Panel
        title="Policies"
        aside={
          <button type="button" class="btn" onClick={() => edit({ id: "", version: 0, text: "", enabled: true })}>
            New policy
          </button>
        }
      >
        <p class="panel-note">
          Where rules do not suffice: sentences that the router follows when it judges. A decision says which one it followed, and you can
          call that decision wrong on its page.
        </p>
        <Answer of={answer}>
          {({ policies, marks }) =>
            policies.length === 0 ? (
              <Empty>
                No policy yet. One might say: “When a build of the main branch fails, tell us what broke. Leave other branches alone.”
              </Empty>
            ) : (
              <ul class="list">
                {policies.map((policy) => (
                  <PolicyRow
                    key={policy.id}
                    policy={policy}
                    mark={marks.find(({ policyId }) => policyId === policy.id)}
                    onEdit={() => edit(policy)}
                    onSwitch={() => void save(switched(policy)).then((wrong) => wrong !== null && say(wrong))}
                  />
                ))}
              </ul>
            )
          }
        </Answer>
        {edited.value === null ? null : (
          <PolicyDialog
            policy={edited.value}
            onClose={() => {
              edited.value = null;
            }}
            onSave={save}
          />
        )}
      </Panel>
      <ReleasePanel />
      <SpeculationPanel version={reads.value} />
    </>
  );
}

const switched = ({ id, version, text, enabled, speculation }: SavedPolicy): PolicyInput => ({
  ...{ id, version, text, enabled: !enabled },
  ...(speculation === undefined ? {} : { speculation }),
});

function PolicyRow(props: {
  policy: SavedPolicy;
  mark: PoliciesAnswer["marks"][number] | undefined;
  onEdit: () => void;
  onSwitch: () => void;
}) {
  const { policy, mark } = props;
  return (
    <li class="rule-row">
      <span class={`rule-outcome ${policy.enabled ? "rule-request" : "rule-ignore"}`}>{policy.enabled ? "on" : "off"}</span>
      <span class="rule-text">
        <span dir="auto">{policy.text}</span>
        <span class="muted fine-print">
          <span class="mono">{policy.id}</span> · version {policy.version}, saved by {policy.savedBy} <Ago atMs={policy.savedMs} />
          {policy.speculation ? ` · may start work by itself in ${placesText(policy.speculation.places).replaceAll("\n", ", ")}` : ""}
          {mark ? ` · ${mark.wrong} of ${mark.marked} decisions that were looked at were wrong` : ""}
        </span>
      </span>
      <span class="row-buttons">
        <button type="button" class="btn btn-bare" aria-label={`Edit ${policy.id}`} onClick={props.onEdit}>
          Edit
        </button>
        <button
          type="button"
          class="btn btn-bare"
          aria-label={`Switch ${policy.enabled ? "off" : "on"} ${policy.id}`}
          onClick={props.onSwitch}
        >
          {policy.enabled ? "Switch off" : "Switch on"}
        </button>
      </span>
    </li>
  );
}

/** In the words of the form; what else is wrong the server says. */
function whatIsWrong({ id, text }: PolicyInput): string | null {
  if (!policyInput.shape.id.safeParse(id).success)
    return "Give the policy a short name of small letters, digits and dashes, such as quiet-bots: decisions speak of it.";
  return text.trim() === "" ? "Write what the router should do, or leave." : null;
}

function PolicyDialog(props: { policy: PolicyInput; onSave: (policy: PolicyInput) => Promise<string | null>; onClose: () => void }) {
  const [form, setForm] = useState(props.policy);
  const { id, version, text, enabled } = form;
  const [setting, setSetting] = useState(form.speculation ?? null);
  const [places, setPlaces] = useState(placesText(setting?.places ?? []));
  const [wrong, setWrong] = useState<string | null>(null);
  const save = async () => {
    const speculation = setting === null ? {} : { speculation: { ...setting, places: placesOf(places) } };
    const policy = { id: id.trim(), version, text, enabled, ...speculation };
    const problem = whatIsWrong(policy) ?? (await props.onSave(policy));
    setWrong(problem);
    if (problem === null) props.onClose();
  };
  const number = (name: "callsPerTask" | "callsPerDay" | "maxWastedCalls", label: string) =>
    setting === null ? null : (
      <label>
        <span>{label}</span>
        <input
          class="field"
          type="number"
          min={1}
          required
          value={setting[name]}
          onInput={(event) => setSetting({ ...setting, [name]: Number(event.currentTarget.value) })}
        />
      </label>
    );
  return (
    <Dialog title={version === 0 ? "A new policy" : `Policy ${id}`} onClose={props.onClose}>
      <form
        class="rule-form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {version > 0 ? null : (
          <label class="wide">
            <span>Name</span>
            <input
              class="field"
              value={id}
              placeholder="quiet-bots"
              onInput={(event) => setForm({ ...form, id: event.currentTarget.value })}
            />
          </label>
        )}
        <label class="wide">
          <span>What the router should do, or leave</span>
          <textarea
            class="field"
            dir="auto"
            rows={4}
            maxLength={2000}
            value={text}
            onInput={(event) => setForm({ ...form, text: event.currentTarget.value })}
          />
        </label>
        <label class="check wide">
          <input
            type="checkbox"
            checked={setting !== null}
            onChange={(event) => setSetting(event.currentTarget.checked ? firstSetting : null)}
          />
          <span>May start work that nobody asked for</span>
        </label>
        {setting === null ? null : (
          <label class="wide">
            <span>Where, one place a line: what the team writes there, and checks of its branches, may cause it</span>
            <textarea
              class="field mono"
              rows={2}
              required
              placeholder="github acme/app"
              value={places}
              onInput={(event) => setPlaces(event.currentTarget.value)}
            />
          </label>
        )}
        {number("callsPerTask", "Model calls of one task")}
        {number("callsPerDay", "Model calls in 24 hours")}
        {number("maxWastedCalls", "Pause after so many wasted calls in 7 days")}
        <FormEnd wrong={wrong} submit={`Save as version ${version + 1}`} onClose={props.onClose} />
      </form>
    </Dialog>
  );
}
