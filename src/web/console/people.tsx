// People of the team: personal invite links, and taking access away.
import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { InviteAnswer, LoginAnswer, PeopleAnswer, PersonRow } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import { Ago, Answer, CopyLine, Dialog, Empty, FormEnd, Panel, useAnswer } from "./parts.tsx";
import { api, change, question, say } from "./store.ts";

export function PeoplePage() {
  const version = useSignal(0);
  const invite = useSignal<{ name: string; personId: string; link: string } | null>(null);
  const people = useAnswer<PeopleAnswer>("people", version.value);
  const asked = useSignal<PersonRow | null>(null);
  const [name, setName] = useState("");
  const [role, setRole] = useState<"member" | "owner">("member");

  const create = async (person: { name: string; role: "member" | "owner"; personId?: string }) => {
    try {
      const { link, personId } = await api<InviteAnswer>("POST", "people", person);
      invite.value = { name: person.name, personId, link };
      version.value++;
      setName("");
    } catch (error) {
      say(messageOf(error));
    }
  };
  const revoke = (person: PersonRow) => {
    question.value = {
      title: `Withdraw the access of ${person.name}?`,
      text: "Open pages of this person are closed at once and links that were not used yet stop working. Tasks that run go on. A new invite can be made at any time.",
      yes: "Withdraw access",
      run: async () => {
        await change(() => api("POST", `people/${person.personId}/revoke`), `${person.name} has no access any more.`);
        // Its link is dead now.
        if (invite.value?.personId === person.personId) invite.value = null;
        version.value++;
      },
    };
  };

  return (
    <div class="stack">
      <Panel title="Invite somebody">
        <form
          class="invite"
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim() !== "") void create({ name: name.trim(), role });
          }}
        >
          <label>
            <span>Name</span>
            <input class="field" dir="auto" maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <label>
            <span>{role === "owner" ? "Role: a member who may also stop everything" : "Role: may start work on the team’s machines"}</span>
            <select class="field" value={role} onChange={(event) => setRole(event.currentTarget.value === "owner" ? "owner" : "member")}>
              <option value="member">Member</option>
              <option value="owner">Owner</option>
            </select>
          </label>
          <button type="submit" class="btn btn-main">
            Make an invite link
          </button>
        </form>
        {invite.value ? (
          <div class="steps" role="status">
            <p>
              A personal link for {invite.value.name}. It is shown only now; whoever opens it first is {invite.value.name}. Send it in a way
              that only they can read.
            </p>
            <CopyLine text={invite.value.link} label={`invite link for ${invite.value.name}`} />
          </div>
        ) : null}
      </Panel>
      <Panel title="People">
        <Answer of={people}>
          {(answer) =>
            answer.people.length === 0 ? (
              <Empty>Nobody is invited yet. Without an invite, people in the widget are guests: they can talk, but start nothing.</Empty>
            ) : (
              <ul class="list">
                {answer.people.map((person) => (
                  <li class="machine-row" key={person.personId}>
                    <span class="machine-text">
                      <span dir="auto">
                        {person.name} <span class="muted">· {person.role}</span>
                      </span>
                      <span class="muted fine-print">
                        {person.revokedMs === null ? (
                          <>
                            since <Ago atMs={person.createdMs} />
                            {person.login === null ? "" : `, ${person.login} at GitHub`}
                          </>
                        ) : (
                          <>
                            access withdrawn <Ago atMs={person.revokedMs} />
                          </>
                        )}
                      </span>
                    </span>
                    {person.revokedMs === null ? (
                      <span class="row-buttons">
                        <button
                          type="button"
                          class="btn btn-bare"
                          aria-label={`New link for ${person.name}`}
                          onClick={() => void create({ name: person.name, role: person.role, personId: person.personId })}
                        >
                          New link
                        </button>
                        <button
                          type="button"
                          class="btn btn-bare"
                          aria-label={`Login of ${person.name} at GitHub`}
                          onClick={() => {
                            asked.value = person;
                          }}
                        >
                          GitHub
                        </button>
                        <button
                          type="button"
                          class="btn"
                          aria-label={`Withdraw the access of ${person.name}`}
                          onClick={() => revoke(person)}
                        >
                          Withdraw
                        </button>
                      </span>
                    ) : null}
                  </li>
                ))}
              </ul>
            )
          }
        </Answer>
      </Panel>
      {asked.value === null ? null : (
        <LoginForm
          person={asked.value}
          onClose={(saved) => {
            asked.value = null;
            if (saved) version.value++;
          }}
        />
      )}
    </div>
  );
}

function LoginForm({ person, onClose }: { person: PersonRow; onClose: (saved: boolean) => void }) {
  const [login, setLogin] = useState(person.login ?? "");
  const [wrong, setWrong] = useState<string | null>(null);
  const save = async () => {
    try {
      const saved = await api<LoginAnswer>("POST", `people/${person.personId}/github`, { login });
      say(saved.login === null ? `${person.name} has no login at GitHub here.` : `${saved.login} at GitHub is ${person.name}.`);
      onClose(true);
    } catch (error) {
      setWrong(messageOf(error));
    }
  };
  return (
    <Dialog title={`${person.name} at GitHub`} onClose={() => onClose(false)}>
      <form
        class="rule-form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <p class="muted wide">
          What this login writes, in every repository that is heard here, counts as theirs: with the rights of a member, and no longer once
          their access is withdrawn. Without one, GitHub says who may write in a repository.
        </p>
        <label class="wide">
          <span>Login</span>
          <input
            class="field"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            maxLength={100}
            value={login}
            onInput={(event) => setLogin(event.currentTarget.value)}
          />
        </label>
        <FormEnd wrong={wrong} submit="Save" onClose={() => onClose(false)} />
      </form>
    </Dialog>
  );
}
