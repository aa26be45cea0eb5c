// What is set up and what is missing, from /health, with the command that helps; GitHub step by step.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { GitHubSetUpAnswer } from "../../protocol/console.ts";
import { DoorError, fetchJson } from "../shared/fetch-json.ts";
import { ShapeIcon } from "../shared/icons.tsx";
import { CopyLine, Empty, Panel, useAnswer } from "./parts.tsx";

type Health = {
  status: string;
  version: string;
  missing: { name: string; purpose: string }[];
  model: { ready: boolean; note: string };
};

/** At a loopback address the settings come from a file, not from a deployment's secrets. */
const isLocal = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(location.hostname);

const Mark = (props: { good: boolean; children: string }) => (
  <span class="set-up-line">
    <span class={props.good ? "tone-good" : "tone-wait"}>
      <ShapeIcon shape={props.good ? "check" : "half"} />
    </span>
    <span>{props.children}</span>
  </span>
);

export function SetUp() {
  const health = useSignal<Health | string | null>(null);
  useEffect(() => {
    fetchJson<Health>("GET", "/health").then(
      (value) => {
        health.value = value;
      },
      (error: unknown) => {
        health.value = error instanceof DoorError ? error.message : String(error);
      },
    );
  }, []);
  const state = health.value;
  if (state === null) return null;
  if (typeof state === "string")
    return (
      <Panel title="Set-up">
        <Empty>{state}</Empty>
      </Panel>
    );
  return (
    <Panel title="Set-up" aside={<span class="muted">version {state.version}</span>}>
      <div class="set-up">
        <Mark good={state.model.ready}>{`Model: ${state.model.note}`}</Mark>
        {state.missing
          .filter(({ name }) => !name.startsWith("GITHUB_"))
          .map(({ name, purpose }) => (
            <div key={name}>
              <Mark good={false}>{`${name} is missing: it ${purpose}.`}</Mark>
              {isLocal ? (
                <p class="set-up-line muted">{`Put a line ${name}=… into .dev.vars and start again.`}</p>
              ) : (
                <CopyLine text={`npx wrangler secret put ${name}`} label={`command that sets ${name}`} />
              )}
            </div>
          ))}
        <GitHubSteps />
      </div>
    </Panel>
  );
}

/** GitHub in steps: the first that is not done is open, the others can be opened. */
function GitHubSteps() {
  const answer = useAnswer<GitHubSetUpAnswer>("github");
  if (answer.kind !== "here") return null;
  const { steps } = answer.value;
  const next = steps.findIndex(({ done }) => !done);
  return (
    <details class="set-up-steps" open={next >= 0}>
      <summary>
        GitHub: {steps.filter(({ done }) => done).length} of {steps.length} steps done
      </summary>
      <ol>
        {steps.map(({ title, done, text, paste }, at) => (
          <li key={title}>
            <details open={at === next}>
              <summary>
                <Mark good={done}>{`${title}${done ? "" : at === next ? " — next" : ""}`}</Mark>
              </summary>
              <p class="muted fine-print">{text}</p>
              {paste.map((line) => (
                <CopyLine key={line.text} text={line.text} label={line.label} />
              ))}
            </details>
          </li>
        ))}
      </ol>
    </details>
  );
}
