// A person's word on a decision: was it wanted?
import { useSignal } from "@preact/signals";
import type { DecisionAnswer } from "../../protocol/console.ts";
import { Ago } from "./parts.tsx";
import { api, change } from "./store.ts";

export function MarkDecision(props: { answer: DecisionAnswer; onMarked: () => void }) {
  const { decision, mark } = props.answer;
  const note = useSignal(mark?.note ?? "");
  const send = async (wrong: boolean) => {
    const said = note.value.trim();
    await change(
      () => api("POST", `decisions/${decision.decisionId}/mark`, { wrong, ...(said === "" ? {} : { note: said }) }),
      wrong ? "Noted as wrong." : "Noted as right.",
    );
    props.onMarked();
  };
  return (
    <form class="notice notice-form" onSubmit={(event) => event.preventDefault()}>
      <input
        class="field"
        dir="auto"
        maxLength={500}
        aria-label="What was wrong with it"
        placeholder={mark ? "" : "What was wrong with it, if anything"}
        value={note.value}
        onInput={(event) => {
          note.value = event.currentTarget.value;
        }}
      />
      <button type="button" class="btn" aria-pressed={mark?.wrong === true} onClick={() => void send(true)}>
        It was wrong
      </button>
      <button type="button" class="btn" aria-pressed={mark?.wrong === false} onClick={() => void send(false)}>
        It was right
      </button>
      {mark ? (
        <span class="muted fine-print">
          {mark.by} <Ago atMs={mark.atMs} />
        </span>
      ) : null}
    </form>
  );
}
