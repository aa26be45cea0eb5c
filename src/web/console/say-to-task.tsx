// What an operator says to a task, and what is queued for it: seen at the next step, after its report, or first of all.
import { useRef, useState } from "preact/hooks";
import { messageOf } from "../../protocol/fault.ts";
import type { QueuedMessage } from "../../protocol/task.ts";
import type { Amendment, InputMode } from "../../protocol/trigger.ts";
import { useMoves } from "../shared/moves.tsx";
import { Ago, Panel } from "./parts.tsx";
import { api, change, say } from "./store.ts";

const modes: { mode: InputMode; word: string; hint: string; said: string }[] = [
  { mode: "steer", word: "Steer", hint: "it reads it at its next step", said: "It reads it at its next step." },
  { mode: "queue", word: "Queue", hint: "it waits until this work has reported", said: "It waits until this work has reported." },
  { mode: "interrupt", word: "Interrupt", hint: "what runs is stopped first", said: "What runs is stopped, then it reads it." },
];

const newId = (): string => crypto.randomUUID();

export function SayToTask(props: {
  taskId: string;
  open: boolean;
  backlog: readonly QueuedMessage[];
  backlogRevision: number;
  onChanged: () => void;
}) {
  const { taskId, open, backlog, backlogRevision: revision, onChanged } = props;
  const moves = useMoves({
    ids: backlog.map(({ itemId }) => itemId),
    revision,
    move: (id, before) =>
      api("POST", `tasks/${taskId}/backlog/${id}`, { change: "move", before, revision })
        .finally(onChanged)
        .catch((error: unknown) => {
          say(messageOf(error));
          throw error;
        }),
    say,
  });
  if (!open && backlog.length === 0) return null;
  return (
    <Panel title="Say something to this task" count={backlog.length === 0 ? undefined : backlog.length}>
      {open ? <Composer taskId={taskId} onSent={onChanged} /> : null}
      {backlog.length === 0 ? null : (
        <>
          <p class="panel-note muted" id="queued-note">
            Queued, done next in this order:
          </p>
          <ol class="list said-list" aria-labelledby="queued-note">
            {backlog.map((item) => (
              <Queued key={item.itemId} taskId={taskId} item={item} moves={moves} onChanged={onChanged} />
            ))}
          </ol>
        </>
      )}
    </Panel>
  );
}

function Composer(props: { taskId: string; onSent: () => void }) {
  const [text, setText] = useState("");
  const [mode, setMode] = useState<InputMode>("steer");
  // The same id until it is taken: a repeated click is the same message.
  const id = useRef(newId());
  const chosen = modes.find((each) => each.mode === mode);
  const send = async () => {
    if (text.trim() === "") {
      say("Write what it should know first.");
      return;
    }
    await change(async () => {
      await api("POST", `tasks/${props.taskId}/messages`, { id: id.current, text: text.trim(), mode });
      id.current = newId();
      setText("");
      props.onSent();
    }, chosen?.said ?? "It is said.");
  };
  return (
    <form
      class="rule-form say-form"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="wide">
        <span>Your words, with the owner’s authority</span>
        <textarea class="field" dir="auto" rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <fieldset class="wide">
        <legend>When</legend>
        {modes.map((each) => (
          <label key={each.mode} class="check">
            <input type="radio" name="mode" checked={mode === each.mode} onChange={() => setMode(each.mode)} />
            <span>
              {each.word} <span class="muted">– {each.hint}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <p class="dialog-buttons wide">
        <button type="submit" class="btn btn-main">
          Send
        </button>
      </p>
    </form>
  );
}

function Queued(props: { taskId: string; item: QueuedMessage; moves: ReturnType<typeof useMoves>; onChanged: () => void }) {
  const { item } = props;
  const [words, setWords] = useState<string | null>(null);
  const start = item.text.slice(0, 60);
  const about = `“${start}”`;
  const amend = (what: Amendment, said: string, text?: string) =>
    change(async () => {
      await api("POST", `tasks/${props.taskId}/backlog/${item.itemId}`, { change: what, ...(text === undefined ? {} : { text }) });
      setWords(null);
      props.onChanged();
    }, said);
  return (
    <li class="said">
      <p class="said-head muted">
        <strong dir="auto">{item.from}</strong> · <Ago atMs={item.atMs} />
      </p>
      {words === null ? (
        <p class="said-text" dir="auto">
          {item.text}
        </p>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void amend("edit", "It was changed.", words);
          }}
        >
          <textarea
            class="field"
            dir="auto"
            rows={2}
            aria-label={`New words for ${about}`}
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
          <button type="submit" class="btn btn-main">
            Save
          </button>{" "}
          <button type="button" class="btn btn-bare" onClick={() => setWords(null)}>
            Cancel
          </button>
        </form>
      )}
      {words === null ? (
        <span class="row-buttons">
          {props.moves(item.itemId, start)}
          <button type="button" class="btn btn-bare" aria-label={`Edit: ${about}`} onClick={() => setWords(item.text)}>
            Edit
          </button>
          <button
            type="button"
            class="btn btn-bare"
            aria-label={`Hand over now: ${about}`}
            onClick={() => void amend("now", "It is handed over at the next step.")}
          >
            Now
          </button>
          <button
            type="button"
            class="btn btn-bare"
            aria-label={`Remove: ${about}`}
            onClick={() => void amend("withdraw", "It was removed.")}
          >
            Remove
          </button>
        </span>
      ) : null}
    </li>
  );
}
