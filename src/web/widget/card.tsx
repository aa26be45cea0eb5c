// A task as a card in the conversation: what it is, how it stands, its answer, and a place to talk to it.
import { useState } from "preact/hooks";
import { nowMs } from "../shared/clock.ts";
import { ChevronIcon, ShapeIcon, StateMark } from "../shared/icons.tsx";
import { useMoves } from "../shared/moves.tsx";
import { actionsOf, isBusy, statusView } from "../shared/status.ts";
import { elapsed } from "../shared/time.ts";
import { Composer } from "./composer.tsx";
import { write } from "./keep.ts";
import { DraftView, PendingMessage, RowView } from "./message.tsx";
import { foldWords, type TopicView } from "./model.ts";
import { act, amend, decide, say, spoken } from "./store.ts";

const words = {
  stop: ["Stop", "Stopping"],
  continue: ["Continue", "Continuing"],
  again: ["Try again", "Asked again"],
  accept: ["Accept", "Accepted"],
  reject: ["Reject", "Rejected"],
} as const;
/** On what failed there is nothing to reject but to try it again. */
const leave = ["Leave it", "Left"] as const;

const Elapsed = (props: { task: { startedMs: number; endedMs?: number | undefined } }) => (
  <span class="elapsed">{elapsed(props.task, nowMs.value)}</span>
);

function Actions(props: { topic: TopicView }) {
  const { topic } = props;
  const card = topic.card;
  if (!card) return null;
  return (
    <>
      {actionsOf(card).map((action) => {
        // Asked again: until the task runs, the last word is the person's.
        const pressed =
          topic.pressed.includes(action) ||
          (action === "again" && (topic.pending.length > 0 || topic.latest.at(-1)?.row.kind === "message"));
        const isVerdict = action === "accept" || action === "reject";
        const chosen = isVerdict && (pressed || (card.accepted !== undefined && card.accepted === (action === "accept")));
        const [idle, done] = action === "reject" && card.status === "failed" ? leave : words[action];
        const word = (pressed && !isVerdict) || chosen ? done : idle;
        return (
          <button
            key={action}
            type="button"
            class={action === "continue" ? "btn btn-main" : "btn"}
            aria-pressed={isVerdict ? chosen : undefined}
            aria-disabled={pressed && !isVerdict ? true : undefined}
            aria-label={isVerdict && idle !== leave[0] ? `${word} the result of “${card.title}”` : `${word}: “${card.title}”`}
            onClick={() => {
              if (pressed) return;
              if (action === "again") say(topic.threadId, `${idle}.`);
              else act(topic, action);
            }}
          >
            {isVerdict && idle !== leave[0] ? <ShapeIcon shape={action === "accept" ? "check" : "cross"} /> : null}
            {word}
          </button>
        );
      })}
    </>
  );
}

const Small = (props: { word: string; about: string; onClick: () => void }) => (
  <button type="button" class="btn btn-bare" aria-label={`${props.word} “${props.about}”`} onClick={props.onClick}>
    {props.word}
  </button>
);

/** What waits for the current work's report: each can be moved, changed, handed over now, or taken back. */
function Backlog(props: { topic: TopicView }) {
  const { queued, threadId, card } = props.topic;
  const [editing, setEditing] = useState<string | null>(null);
  const revision = card?.backlogRevision ?? 0;
  const moves = useMoves({
    ids: queued.map(({ clientMsgId }) => clientMsgId),
    revision,
    move: (id, before) => amend(threadId, id, "move", { before, revision }),
    say: (text) => {
      spoken.value = text;
    },
  });
  if (queued.length === 0) return null;
  return (
    <section class="card-rows backlog" aria-label="Queued messages">
      <p class="fine muted">Queued</p>
      {queued.map(({ clientMsgId: id, text }) => (
        <div key={id} class="card-foot">
          {editing === id ? (
            <Composer
              small
              autoFocus
              draftKey={`edit:${id}`}
              label="Edit"
              placeholder={text}
              onSend={(next) => {
                amend(threadId, id, "edit", { text: next });
                setEditing(null);
              }}
            />
          ) : (
            <p class="plain" dir="auto">
              {text}
            </p>
          )}
          <span class="card-buttons">
            {moves(id, text)}
            <Small
              word={editing === id ? "Cancel" : "Edit"}
              about={text}
              onClick={() => {
                if (editing !== id) write(`edit:${id}`, text);
                setEditing(editing === id ? null : id);
              }}
            />
            <Small word="Now" about={text} onClick={() => amend(threadId, id, "now")} />
            <Small word="Remove" about={text} onClick={() => amend(threadId, id, "withdraw")} />
          </span>
        </div>
      ))}
    </section>
  );
}

/** What the task would like to send outside, whole, with the two words that a person can say to it. */
function Proposals(props: { topic: TopicView }) {
  const { topic } = props;
  const offers = topic.card?.offers ?? [];
  if (offers.length === 0) return null;
  return (
    <section class="card-rows" aria-label="Proposals that wait for you">
      {offers.map(({ id, title, text }) => {
        const pressed = topic.pressed.includes(id);
        return (
          <div key={id} class="proposal">
            <p dir="auto">
              <strong>{title}</strong>
            </p>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
            <p class="plain proposal-text" dir="auto" tabIndex={0}>
              {text}
            </p>
            <span class="card-buttons">
              {(["release", "decline"] as const).map((verdict) => (
                <button
                  key={verdict}
                  type="button"
                  class={verdict === "release" ? "btn btn-main" : "btn"}
                  aria-disabled={pressed ? true : undefined}
                  aria-label={`${verdict === "release" ? "Release" : "Decline"}: ${title}`}
                  onClick={() => {
                    if (!pressed) decide(topic, id, verdict);
                  }}
                >
                  {verdict === "release" ? "Release" : "Decline"}
                </button>
              ))}
            </span>
          </div>
        );
      })}
    </section>
  );
}

export function TaskCardView(props: { topic: TopicView }) {
  const { topic } = props;
  const { card } = topic;
  const [unfolded, setUnfolded] = useState(false);
  const [replying, setReplying] = useState(false);
  const view = card ? statusView(card) : null;
  const title = card?.title ?? topic.title;
  const open = view === null || view.open;
  const machine = card?.machine === card?.waitingFor ? undefined : card?.machine;
  // What is asked stands below as a message.
  const line = open && !view?.forYou ? card?.line : "";
  const listId = `rows-${topic.taskId}`;
  return (
    <article class={`card ${view?.forYou ? "card-asks" : ""}`} aria-label={`Task: ${title}`}>
      <header class="card-head">
        <h2 dir="auto">{title}</h2>
        <p class="card-state">
          {view ? <StateMark view={view} /> : <span class="state tone-quiet">starting</span>}
          {card ? <Elapsed task={card} /> : null}
        </p>
      </header>
      {machine || line ? (
        <p class="card-line">
          {machine ? <span class="machine">{machine}</span> : null}
          {line ? (
            <span class="mono" dir="auto">
              {line}
            </span>
          ) : null}
        </p>
      ) : null}
      {topic.earlier.length > 1 ? (
        <button
          type="button"
          class="btn btn-bare unfold"
          aria-expanded={unfolded}
          aria-controls={listId}
          onClick={() => setUnfolded(!unfolded)}
        >
          <ChevronIcon open={unfolded} />
          {unfolded ? "Hide earlier messages" : foldWords(topic.earlier)}
        </button>
      ) : null}
      <div class="card-rows" id={listId}>
        {unfolded ? topic.earlier.map((shown) => <RowView key={shown.seq} shown={shown} threadId={topic.threadId} />) : null}
        {topic.latest.map((shown) => (
          <RowView key={shown.seq} shown={shown} threadId={topic.threadId} />
        ))}
        {topic.draft ? <DraftView draft={topic.draft} /> : null}
        {topic.pending.map((entry) => (
          <PendingMessage key={entry.frame.clientMsgId} entry={entry} />
        ))}
      </div>
      <Proposals topic={topic} />
      <Backlog topic={topic} />
      <footer class="card-foot">
        {open || replying ? (
          <Composer
            small
            autoFocus={replying}
            draftKey={`draft:${topic.threadId}`}
            label={`Reply to the task “${title}”`}
            placeholder={view?.forYou ? "Answer …" : "Reply to this task …"}
            busy={card !== null && isBusy(card)}
            onSend={(text, mode) => say(topic.threadId, text, mode)}
          />
        ) : null}
        <span class="card-buttons">
          {open || replying ? null : (
            <button type="button" class="btn btn-bare" onClick={() => setReplying(true)}>
              Reply
            </button>
          )}
          <Actions topic={topic} />
        </span>
      </footer>
    </article>
  );
}
