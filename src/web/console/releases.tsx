// What leaves for the outside world without anybody's word: a setting of the team, in versions.
import { useSignal } from "@preact/signals";
import type { OfferKind, ReleasePolicy } from "../../protocol/offer.ts";
import { Answer, Panel, useAnswer } from "./parts.tsx";
import { api, change } from "./store.ts";

const words: Record<OfferKind, string> = {
  label: "Labels",
  pull_request: "Pull requests from a task's own branch",
  comment: "Comments in a task's own words",
};

const kinds = Object.keys(words) as OfferKind[];

export function ReleasePanel() {
  const reads = useSignal(0);
  const answer = useAnswer<ReleasePolicy>("offers/setting", reads.value);
  const set = (policy: ReleasePolicy, kind: OfferKind, on: boolean) => {
    const byItself = kinds.filter((each) => (each === kind ? on : policy.byItself.includes(each)));
    return change(
      async () => {
        await api("POST", "offers/setting", { version: policy.version, byItself }).finally(() => reads.value++);
      },
      on ? "From now on these leave by themselves." : "From now on these wait for a release.",
    );
  };
  return (
    <Panel title="What leaves by itself">
      <p class="panel-note">
        Tasks hold no account anywhere: what they would like to send waits, and stands under “Waiting for you” and on the task's card. What
        is ticked here does not wait, if a member asked for the work in that very repository and the task has read nothing from outside the
        team.
      </p>
      <Answer of={answer}>
        {(policy) => (
          <ul class="list plain">
            {kinds.map((kind) => (
              <li key={kind}>
                <label class="check">
                  <input
                    type="checkbox"
                    checked={policy.byItself.includes(kind)}
                    onChange={(event) => void set(policy, kind, event.currentTarget.checked)}
                  />{" "}
                  {words[kind]}
                </label>
              </li>
            ))}
          </ul>
        )}
      </Answer>
    </Panel>
  );
}
