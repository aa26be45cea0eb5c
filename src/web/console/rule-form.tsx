// One rule of the gate as a form, in a dialog.
import { useState } from "preact/hooks";
import type { GateRule } from "../../protocol/gate.ts";
import { roles } from "../../protocol/principal.ts";
import { type Outcome, outcomes } from "../../protocol/trigger.ts";
import { Dialog, FormEnd } from "./parts.tsx";
import { fromForm, outcomeWords, type RuleForm, toForm } from "./rules-model.ts";

const outcomeHelp: Record<Outcome, string> = {
  mute: "nobody hears it, tasks that follow the thread neither",
  ignore: "nothing is written, unless a task follows the thread",
  record: "kept as context, nobody is asked",
  candidate: "the router decides whether it concerns us",
  request: "somebody asked for something: it is answered",
};

type TextField = "id" | "source" | "place" | "thread" | "kind" | "principalId" | "words" | "facts" | "reason";

const fields: { name: TextField; label: string; hint: string }[] = [
  { name: "source", label: "Source", hint: "github, web, chat, generic" },
  { name: "place", label: "Place", hint: "acme/app, or acme/* for all of them" },
  { name: "thread", label: "Thread", hint: "#12, branch:main, or a thr_ id" },
  { name: "kind", label: "Kind of event", hint: "issues.opened, or check_run.*" },
  { name: "principalId", label: "Who", hint: "a login, such as dependabot[bot]" },
  { name: "words", label: "Any of these words", hint: "deploy, release" },
  { name: "facts", label: "Facts", hint: "conclusion = failure, branch = main" },
];

export function RuleDialog(props: {
  rule: GateRule | null;
  taken: readonly string[];
  onKeep: (rule: GateRule) => void;
  onClose: () => void;
}) {
  const [form, setForm] = useState<RuleForm>(toForm(props.rule ?? { id: "", outcome: "ignore", reason: "" }));
  const [wrong, setWrong] = useState<string | null>(null);
  const set = (more: Partial<RuleForm>) => setForm({ ...form, ...more });
  const keep = () => {
    const rule = fromForm(form, props.taken);
    if (typeof rule === "string") setWrong(rule);
    else props.onKeep(rule);
  };
  const text = (name: TextField, label: string, hint: string) => (
    <label key={name} class={name === "reason" ? "wide" : undefined}>
      <span>{label}</span>
      <input
        class="field"
        dir="auto"
        value={form[name]}
        placeholder={hint}
        onInput={(event) => set({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <Dialog title={props.rule ? `Rule ${props.rule.id}` : "A new rule"} onClose={props.onClose}>
      <form
        class="rule-form"
        onSubmit={(event) => {
          event.preventDefault();
          keep();
        }}
      >
        {text("id", "Name", "quiet-dependabot")}
        <label>
          <span>Then</span>
          <select class="field" value={form.outcome} onChange={(event) => set({ outcome: outcomeOf(event.currentTarget.value) })}>
            {outcomes.map((outcome) => (
              <option key={outcome} value={outcome}>
                {outcomeWords[outcome]}
              </option>
            ))}
          </select>
          <span>{outcomeHelp[form.outcome]}</span>
        </label>
        <p class="muted wide">When all of these hold. What is left empty may be anything.</p>
        {fields.map(({ name, label, hint }) => text(name, label, hint))}
        <label>
          <span>Addressed to us</span>
          <select class="field" value={form.addressed} onChange={(event) => set({ addressed: addressedOf(event.currentTarget.value) })}>
            <option value="any">either way</option>
            <option value="yes">yes</option>
            <option value="no">no</option>
          </select>
        </label>
        <fieldset class="wide">
          <legend>Roles (none chosen: all)</legend>
          {roles.map((role) => (
            <label key={role} class="check">
              <input
                type="checkbox"
                checked={form.roles.includes(role)}
                onChange={(event) =>
                  set({ roles: event.currentTarget.checked ? [...form.roles, role] : form.roles.filter((other) => other !== role) })
                }
              />
              {role}
            </label>
          ))}
        </fieldset>
        {text("reason", "Because", "We merge these by hand once a week.")}
        <FormEnd wrong={wrong} submit="Keep in the draft" onClose={props.onClose} />
      </form>
    </Dialog>
  );
}

const outcomeOf = (value: string): Outcome => outcomes.find((outcome) => outcome === value) ?? "ignore";
const addressedOf = (value: string): RuleForm["addressed"] => (value === "yes" || value === "no" ? value : "any");
