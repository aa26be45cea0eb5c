// One message of the conversation, in the root or in a card.
import { ShapeIcon } from "../shared/icons.tsx";
import { Folded, FoldedMarkdown, isLong, Markdown } from "../shared/markdown.tsx";
import { clockTime, exact } from "../shared/time.ts";
import type { Draft, ShownRow } from "./model.ts";
import type { OutboxEntry } from "./outbox.ts";
import { conversation, link, mark, ofTeam, outbox, say } from "./store.ts";

/** What a reply's delivery says to people; nothing while all is well. */
const unsent: Partial<Record<string, string>> = {
  expired: "This was too old to be sent.",
  failed: "This could not be sent.",
  unknown: "It is not known whether this was sent.",
};

export function RowView(props: { shown: ShownRow; threadId: string | undefined; delivered?: boolean }) {
  const { row } = props.shown;
  switch (row.kind) {
    case "topic":
    case "amend":
      return null;
    case "message":
      return row.from.you ? (
        <OwnMessage text={row.text} atMs={row.atMs} state={props.delivered ? "delivered" : null} />
      ) : (
        <div class="message">
          <p class="who">{row.from.name}</p>
          <p class="plain" dir="auto" title={exact(row.atMs)}>
            {row.text}
          </p>
        </div>
      );
    case "reply":
      return (
        <div class={row.replyKind === "notice" ? "message message-notice" : "message"} title={exact(row.atMs)}>
          <p class="hidden-visually">{conversation.value.welcome?.agentName ?? "Answer"}:</p>
          <FoldedMarkdown text={row.text} />
          {row.fullText === undefined ? null : (
            <details>
              <summary>Show the full text</summary>
              <Markdown text={row.fullText} />
            </details>
          )}
          {row.replyKind === "notice" ? <Confirm text={row.text} threadId={props.threadId ?? ""} /> : null}
          {row.proactive && row.id && ofTeam.value ? <Unwanted of={row.id} threadId={props.threadId ?? ""} /> : null}
          {unsent[row.state] ? <p class="fine tone-bad">{unsent[row.state]}</p> : null}
        </div>
      );
  }
}

/** The line by which an owner confirms what is shown: a press writes it, until it is written. */
function Confirm({ text, threadId }: { text: string; threadId: string }) {
  const line = /^Say “(confirm rul_[a-z0-9]+)”/.exec(text)?.[1];
  const { welcome, rows } = conversation.value;
  const isWritten =
    rows[threadId]?.some(({ row }) => row.kind === "message" && row.text === line) ||
    outbox.value.entries.some(({ frame }) => frame.t === "send" && frame.text === line);
  if (line === undefined || isWritten || welcome?.you.role !== "owner") return null;
  return (
    <button type="button" class="btn btn-main confirm" onClick={() => say(threadId, line)}>
      Confirm
    </button>
  );
}

/** The team's word on what was said by itself, or because a policy wants it. */
function Unwanted({ of, threadId }: { of: string; threadId: string }) {
  const wrong = conversation.value.marks[of] === true;
  return (
    <button type="button" class="btn btn-bare unwanted" aria-pressed={wrong} onClick={() => mark(threadId, of, !wrong)}>
      This was not wanted
    </button>
  );
}

/** A reply while it is written: quiet, and not read out; its row is. */
export const DraftView = ({ draft }: { draft: Draft }) => (
  <div class="message message-draft" aria-busy={draft.state === "writing"}>
    <FoldedMarkdown text={draft.text} />
    {draft.state === "writing" ? null : <p class="fine muted">Interrupted. Your message is kept and will be answered.</p>}
  </div>
);

const OwnMessage = (props: { text: string; atMs: number; state: string | null }) => (
  <div class="message message-own">
    <p class="hidden-visually">You:</p>
    <Folded long={isLong(props.text)}>
      <p class="plain" dir="auto" title={exact(props.atMs)}>
        {props.text}
      </p>
    </Folded>
    {props.state === null ? null : (
      <p class="fine muted">
        {props.state === "delivered" ? <ShapeIcon shape="check" /> : null}
        {props.state} · {clockTime(props.atMs)}
      </p>
    )}
  </div>
);

/** A message of ours that has no row yet. */
export function PendingMessage(props: { entry: OutboxEntry }) {
  const { frame, atMs, state } = props.entry;
  if (frame.t !== "send") return null;
  const word =
    state === "waiting"
      ? link.value.kind === "open"
        ? "sending"
        : link.value.kind === "ended"
          ? "not sent"
          : "waiting to be sent"
      : state;
  return <OwnMessage text={frame.text} atMs={atMs} state={word} />;
}
