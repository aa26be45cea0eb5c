// Machines: which are connected, how to connect one, and how to take one away.
import { useSignal } from "@preact/signals";
import type { BoardState } from "../../protocol/board.ts";
import type { EndpointsAnswer, EnrolmentAnswer } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import { nowMs } from "../shared/clock.ts";
import { duration } from "../shared/time.ts";
import { MachineLine } from "./now.tsx";
import { Ago, Answer, CopyLine, Empty, Panel, useAnswer } from "./parts.tsx";
import { api, change, question, say } from "./store.ts";

function Connect() {
  const enrolment = useSignal<EnrolmentAnswer | null>(null);
  const ask = async () => {
    try {
      enrolment.value = await api<EnrolmentAnswer>("POST", "endpoints/enrolment");
    } catch (error) {
      say(messageOf(error));
    }
  };
  const given = enrolment.value;
  const leftMs = given === null ? 0 : given.expiresMs - nowMs.value;
  return (
    <Panel title="Connect a machine">
      <div class="steps">
        <p>
          The daemon dials out and listens on no port. It makes its own key on the machine; the code below only introduces it, once, within
          ten minutes.
        </p>
        {given === null || leftMs <= 0 ? (
          <>
            {given === null ? null : <p class="tone-wait">That code has expired.</p>}
            <p>
              <button type="button" class="btn btn-main" onClick={() => void ask()}>
                Make a code
              </button>
            </p>
          </>
        ) : (
          <>
            <p>On the machine, in a clone of this repository (replace DIR by the folder that the agent may work in):</p>
            {given.commands.map((command) => (
              <CopyLine key={command} text={command} label="command" />
            ))}
            <p class="muted">
              The code {given.code} is good for {duration(leftMs)}. The machine appears in the list as soon as it connects.
            </p>
          </>
        )}
      </div>
    </Panel>
  );
}

export function MachinesPage(props: { board: BoardState }) {
  const known = useAnswer<EndpointsAnswer>("endpoints", props.board.endpoints.map((endpoint) => endpoint.endpointId).join());
  const revoke = (endpointId: string, name: string) => {
    question.value = {
      title: `Revoke ${name}?`,
      text: "Its connection is closed at once and its key is never accepted again. Commands that run there are no longer followed. To use the machine again, connect it anew with a code.",
      yes: "Revoke it",
      run: () => change(() => api("POST", `endpoints/${endpointId}/revoke`), `${name} is revoked.`),
    };
  };
  return (
    <div class="stack">
      <Panel title="Machines" count={props.board.endpoints.length}>
        <Answer of={known}>
          {({ endpoints }) => {
            const inUse = endpoints.filter((endpoint) => endpoint.revokedMs === null);
            if (inUse.length === 0)
              return <Empty>No machine is connected yet. Make a code below and paste three lines on the machine.</Empty>;
            return (
              <ul class="list">
                {inUse.map((row) => {
                  const live = props.board.endpoints.find((endpoint) => endpoint.endpointId === row.endpointId);
                  return (
                    <li class="machine-row" key={row.endpointId}>
                      <span class="machine-text">
                        {live ? <MachineLine endpoint={live} /> : <span>{row.name} has not connected yet</span>}
                        <span class="muted fine-print">
                          {row.platform}
                          {live ? ` · sandbox: ${live.sandbox}` : ""} · enrolled <Ago atMs={row.createdMs} />
                        </span>
                      </span>
                      <button type="button" class="btn" aria-label={`Revoke ${row.name}`} onClick={() => revoke(row.endpointId, row.name)}>
                        Revoke
                      </button>
                    </li>
                  );
                })}
              </ul>
            );
          }}
        </Answer>
      </Panel>
      <Connect />
    </div>
  );
}
