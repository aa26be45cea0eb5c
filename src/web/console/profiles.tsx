// The profiles: roles that tasks are given. Read, change, add, and go back to an older version.
import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import { grantable } from "../../core/profiles.ts";
import type { ProfileAnswer, ProfilesAnswer, ProfileVersionsAnswer } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import { defaultProfile, type Profile, type SavedProfile } from "../../protocol/profile.ts";
import { Ago, Answer, Dialog, FormEnd, Panel, useAnswer } from "./parts.tsx";
import { emptyForm, fromProfileForm, type ProfileForm, toProfileForm } from "./profiles-model.ts";
import { api, question, say } from "./store.ts";

/** Saves the next version and says that it is in force; a sentence when it was not saved. */
async function saveProfile(edited: Profile): Promise<string | null> {
  try {
    const { profile } = await api<ProfileAnswer>("POST", "profiles", edited);
    say(`Version ${profile.version} of ${profile.name} is in force. Tasks that run keep the version that they began with.`);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

export function ProfilesPage() {
  const reads = useSignal(0);
  const edited = useSignal<{ profile: Profile | null } | null>(null);
  const shown = useSignal<string | null>(null);
  const answer = useAnswer<ProfilesAnswer>("profiles", reads.value);
  const saved = () => {
    reads.value++;
  };
  return (
    <div class="stack">
      <Answer of={answer}>
        {({ profiles }) => (
          <>
            <Panel
              title="Profiles"
              count={profiles.length}
              aside={
                <button
                  type="button"
                  class="btn"
                  onClick={() => {
                    edited.value = { profile: null };
                  }}
                >
                  New profile
                </button>
              }
            >
              <p class="panel-note">
                A profile is a role that a task is given: its tools, its words, its model and its budget. The router chooses by name and
                purpose; without a better one it takes {defaultProfile}.
              </p>
              <ul class="list">
                {profiles.map((profile) => (
                  <ProfileRow
                    key={profile.name}
                    profile={profile}
                    open={shown.value === profile.name}
                    onEdit={() => {
                      edited.value = { profile };
                    }}
                    onVersions={() => {
                      shown.value = shown.value === profile.name ? null : profile.name;
                    }}
                  />
                ))}
              </ul>
            </Panel>
            {shown.value === null ? null : <Versions key={shown.value} name={shown.value} reads={reads.value} onSaved={saved} />}
            {edited.value === null ? null : (
              <ProfileDialog
                profile={edited.value.profile}
                taken={edited.value.profile === null ? profiles.map(({ name }) => name) : []}
                onSaved={saved}
                onClose={() => {
                  edited.value = null;
                }}
              />
            )}
          </>
        )}
      </Answer>
    </div>
  );
}

const toolsIn = (tools: readonly string[]): string => (tools.length === 0 ? "no tools of its own" : tools.join(", "));

function ProfileRow(props: { profile: Profile; open: boolean; onEdit: () => void; onVersions: () => void }) {
  const { name, version, purpose, tools, model, modelCalls } = props.profile;
  return (
    <li class="rule-row">
      <span class="mono">{name}</span>
      <span class="rule-text">
        <span dir="auto">{purpose}</span>
        <span class="muted fine-print">
          {version === 0 ? "as shipped" : `version ${version}`} · {modelCalls} model calls{model === null ? "" : ` of ${model}`} ·{" "}
          <span class="mono">{toolsIn(tools)}</span>
        </span>
      </span>
      <span class="row-buttons">
        <button type="button" class="btn btn-bare" aria-label={`Edit ${name}`} onClick={props.onEdit}>
          Edit
        </button>
        <button type="button" class="btn btn-bare" aria-label={`Versions of ${name}`} aria-expanded={props.open} onClick={props.onVersions}>
          Versions
        </button>
      </span>
    </li>
  );
}

function Versions(props: { name: string; reads: number; onSaved: () => void }) {
  const answer = useAnswer<ProfileVersionsAnswer>(`profiles/${props.name}`, props.reads);
  const goBack = (to: SavedProfile, newest: number) => {
    const { savedBy: _by, savedMs: _at, ...profile } = to;
    question.value = {
      title: `Go back to version ${to.version} of ${props.name}?`,
      text: `It is saved as version ${newest + 1}, for tasks that start from now on. The versions between stay in this list.`,
      yes: "Go back to it",
      run: async () => {
        const wrong = await saveProfile({ ...profile, version: newest });
        if (wrong !== null) say(wrong);
        props.onSaved();
      },
    };
  };
  return (
    <Panel title={`Versions of ${props.name}`}>
      <Answer of={answer}>
        {({ versions }) => (
          <ul class="list">
            {versions.map((each, at) => (
              <li class="machine-row" key={each.version}>
                <span class="machine-text">
                  <span dir="auto">
                    Version {each.version} <span class="muted">· {each.purpose}</span>
                  </span>
                  <span class="muted fine-print">
                    {each.savedMs === null ? (
                      "what ships"
                    ) : (
                      <>
                        saved by {each.savedBy} <Ago atMs={each.savedMs} />
                      </>
                    )}{" "}
                    · {each.modelCalls} model calls · <span class="mono">{toolsIn(each.tools)}</span>
                  </span>
                </span>
                {at === 0 ? (
                  <span class="muted">in force</span>
                ) : (
                  <button
                    type="button"
                    class="btn"
                    aria-label={`Go back to version ${each.version} of ${props.name}`}
                    onClick={() => goBack(each, versions[0]?.version ?? 0)}
                  >
                    Go back
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Answer>
    </Panel>
  );
}

function ProfileDialog(props: { profile: Profile | null; taken: readonly string[]; onSaved: () => void; onClose: () => void }) {
  const [form, setForm] = useState<ProfileForm>(props.profile ? toProfileForm(props.profile) : emptyForm);
  const [wrong, setWrong] = useState<string | null>(null);
  const set = (more: Partial<ProfileForm>) => setForm({ ...form, ...more });
  const version = props.profile?.version ?? 0;
  const save = async () => {
    const profile = fromProfileForm(form, version, props.taken);
    const problem = typeof profile === "string" ? profile : await saveProfile(profile);
    setWrong(problem);
    if (problem !== null) return;
    props.onSaved();
    props.onClose();
  };
  const line = (name: "purpose" | "model" | "modelCalls", label: string, hint: string, wide = false) => (
    <label class={wide ? "wide" : undefined}>
      <span>{label}</span>
      <input
        class="field"
        dir="auto"
        inputMode={name === "modelCalls" ? "numeric" : "text"}
        value={form[name]}
        placeholder={hint}
        onInput={(event) => set({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <Dialog title={props.profile ? `Profile ${props.profile.name}` : "A new profile"} onClose={props.onClose}>
      <form
        class="rule-form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {props.profile ? null : (
          <label class="wide">
            <span>Name</span>
            <input
              class="field"
              value={form.name}
              placeholder="release-notes"
              onInput={(event) => set({ name: event.currentTarget.value })}
            />
          </label>
        )}
        {line("purpose", "When the router should choose it", "Release notes: it reads the commits and writes what changed.", true)}
        <fieldset class="wide">
          <legend>Tools, beside reading, noting, waiting and reporting, which every worker has</legend>
          {grantable.map((tool) => (
            <label key={tool.name} class="check" title={tool.does}>
              <input
                type="checkbox"
                checked={form.tools.includes(tool.name)}
                onChange={(event) =>
                  set({
                    tools: event.currentTarget.checked ? [...form.tools, tool.name] : form.tools.filter((other) => other !== tool.name),
                  })
                }
              />
              <span class="mono">{tool.name}</span>
            </label>
          ))}
        </fieldset>
        <label class="wide">
          <span>What its workers are told, after what every worker is told</span>
          <textarea
            class="field"
            dir="auto"
            rows={5}
            maxLength={4000}
            value={form.prompt}
            onInput={(event) => set({ prompt: event.currentTarget.value })}
          />
        </label>
        {line("model", "Model", "empty: the deployment's own")}
        {line("modelCalls", "Model calls of a task", "15")}
        <FormEnd wrong={wrong} submit={`Save as version ${version + 1}`} onClose={props.onClose} />
      </form>
    </Dialog>
  );
}
