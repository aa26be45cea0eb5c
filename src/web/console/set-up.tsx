// What is set up and what is missing, from /health, with the command that helps.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { DoorError, fetchJson } from "../shared/fetch-json.ts";
import { ShapeIcon } from "../shared/icons.tsx";
import { CopyLine, Empty, Panel } from "./parts.tsx";

type Health = {
  status: string;
  version: string;
  missing: { name: string; purpose: string }[];
  model: { ready: boolean; note: string };
  github: { note: string; lastPing: string | null; lastDelivery: string | null };
};

const Mark = (props: { good: boolean; children: string }) => (
  <p class="set-up-line">
    <span class={props.good ? "tone-good" : "tone-wait"}>
      <ShapeIcon shape={props.good ? "check" : "half"} />
    </span>
    <span>{props.children}</span>
  </p>
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
  const hookHeard = state.github.lastPing !== null || state.github.lastDelivery !== null;
  return (
    <Panel title="Set-up" aside={<span class="muted">version {state.version}</span>}>
      <div class="set-up">
        <Mark good={state.model.ready}>{`Model: ${state.model.note}`}</Mark>
        <Mark good={hookHeard}>{`GitHub: ${state.github.note}`}</Mark>
        {hookHeard ? null : <CopyLine text={`${location.origin}/hooks/github`} label="address for GitHub's webhook" />}
        {state.missing.map(({ name, purpose }) => (
          <div key={name}>
            <Mark good={false}>{`${name} is missing: it ${purpose}.`}</Mark>
            <CopyLine text={`npx wrangler secret put ${name}`} label={`command that sets ${name}`} />
          </div>
        ))}
      </div>
    </Panel>
  );
}
