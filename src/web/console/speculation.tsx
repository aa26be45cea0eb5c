// Work that nobody asked for: what became of it, and what was spent for nothing, by policy.
import type { SpeculationAnswer } from "../../protocol/speculation.ts";
import { Ago, Answer, Empty, Panel, useAnswer } from "./parts.tsx";
import { figureWords, rowWords } from "./speculation-model.ts";

export function SpeculationPanel(props: { version: number }) {
  const answer = useAnswer<SpeculationAnswer>("speculation", props.version);
  return (
    <Panel title="Work that nobody asked for">
      <p class="panel-note">
        A policy may let work start by itself, on a budget of its own. A sure and simple result waits under Now until somebody sends or
        declines it; everything else is dropped, and nobody is disturbed.
      </p>
      <Answer of={answer}>
        {({ off, figures, recent }) => (
          <>
            {off === null ? null : <p class="panel-note muted">Off: {off}</p>}
            {recent.length === 0 ? <Empty>Nothing was started by itself yet.</Empty> : null}
            <ul class="list">
              {figures.map((each) => (
                <li class="rule-row" key={each.policyId}>
                  <span class={`rule-outcome ${each.paused === null ? "rule-request" : "rule-ignore"}`}>
                    {each.paused === null ? "7 days" : "paused"}
                  </span>
                  <span class="rule-text">
                    <span class="mono">{each.policyId}</span>
                    <span class="muted fine-print">{figureWords(each)}</span>
                    {each.paused === null ? null : (
                      <span class="fine-print">It paused itself: {each.paused}. Saving the policy again starts it anew.</span>
                    )}
                  </span>
                </li>
              ))}
              {recent.slice(0, 20).map((row) => (
                <li class="rule-row" key={row.taskId}>
                  <span class="muted fine-print">
                    <Ago atMs={row.startedMs} />
                  </span>
                  <span class="rule-text">
                    <a href={`#/task/${row.taskId}`} dir="auto">
                      {row.title}
                    </a>
                    <span class="muted fine-print" dir="auto">
                      {rowWords(row)} · {row.policy.id} · {row.place}
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          </>
        )}
      </Answer>
    </Panel>
  );
}
