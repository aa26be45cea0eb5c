// The widget's page: header, conversation, composer.
import { effect } from "@preact/signals";
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { nowMs } from "../shared/clock.ts";
import { CloseIcon, DownIcon, Mark } from "../shared/icons.tsx";
import { dayKey, dayName } from "../shared/time.ts";
import { TaskCardView } from "./card.tsx";
import { Composer } from "./composer.tsx";
import { framed, hostTitle, meetHost, shown, tellHost } from "./host.ts";
import { keepsAcrossReloads } from "./keep.ts";
import { DraftView, PendingMessage, RowView } from "./message.tsx";
import type { Item } from "./model.ts";
import { conversation, dropRefusal, items, link, ofTeam, outbox, retry, say, spoken, start, visitNote, waiting } from "./store.ts";

const agentName = (): string => hostTitle.value ?? conversation.value.welcome?.agentName ?? "Switchyard";

function Header() {
  const connected = link.value.kind === "open";
  const word = { open: "connected", connecting: "connecting", offline: "offline", ended: "not connected" }[link.value.kind];
  return (
    <header class="top">
      <Mark />
      <h1>{agentName()}</h1>
      <p class={connected ? "link link-open" : "link"}>
        <span class="link-dot" aria-hidden="true" />
        {word}
      </p>
      {framed ? (
        <button
          type="button"
          class="btn btn-bare close"
          aria-label="Close the conversation"
          onClick={() => tellHost({ switchyard: 1, kind: "close" })}
        >
          <CloseIcon />
        </button>
      ) : null}
    </header>
  );
}

/** What the person must know about this visit; each is one sentence, and most of the time there is none. */
function Notes() {
  const { welcome } = conversation.value;
  const state = link.value;
  const guest = welcome !== null && !ofTeam.value;
  const keeps = keepsAcrossReloads ? "" : " Keep this page open until then: this browser keeps nothing for it.";
  return (
    <div class="notes">
      {state.kind === "ended" ? (
        <p class="note note-bad" role="alert">
          <span>{state.message}</span>
          {state.retry ? (
            <button type="button" class="btn" onClick={retry}>
              Try again
            </button>
          ) : null}
        </p>
      ) : null}
      {state.kind === "offline" ? (
        <p class="note" role="status">
          You are offline. What you write is kept here and sent when the connection is back.{keeps}
        </p>
      ) : null}
      {welcome && !welcome.model.ready ? (
        <p class="note note-wait" role="status">
          {welcome.model.note ?? "The model is not ready yet. What you write is kept and answered later."}
        </p>
      ) : null}
      {visitNote.value !== null ? (
        <p class="note note-wait" role="status">
          <span>{visitNote.value}</span>
          <button
            type="button"
            class="btn btn-bare"
            onClick={() => {
              visitNote.value = null;
            }}
          >
            Dismiss
          </button>
        </p>
      ) : null}
      {guest ? <p class="note note-guest">You are a guest: you can talk here, but only members of the team can start work.</p> : null}
    </div>
  );
}

function Welcome(props: { onPick: (text: string) => void }) {
  const member = ofTeam.value;
  const ideas = member ? ["Run the tests and tell me what fails", "What is going on?"] : ["What can you do?"];
  return (
    <div class="empty">
      <p class="empty-title">{member ? "What should be done?" : "Ask me something."}</p>
      <p class="muted">
        {member
          ? "Each request becomes a task of its own, with its answer here. You can ask for the next thing at once."
          : "Answers arrive here, also when you come back later."}
      </p>
      <div class="ideas">
        {ideas.map((idea) => (
          <button type="button" class="btn" key={idea} onClick={() => props.onPick(idea)}>
            {idea}
          </button>
        ))}
      </div>
    </div>
  );
}

const timeOf = (item: Item): number =>
  item.kind === "topic" ? item.topic.atMs : item.kind === "row" ? item.row.atMs : item.kind === "draft" ? item.draft.rev : item.entry.atMs;

function Items(props: { list: readonly Item[] }) {
  const lastOwn = props.list.findLastIndex((item) => item.kind === "row" && item.row.kind === "message" && item.row.from.you);
  let day = "";
  return props.list.map((item, at) => {
    const today = dayKey(timeOf(item));
    const head = today === day ? null : <p class="day muted">{dayName(timeOf(item), nowMs.peek())}</p>;
    day = today;
    return (
      <div class="item" key={item.key}>
        {head}
        {item.kind === "topic" ? <TaskCardView topic={item.topic} /> : null}
        {item.kind === "row" ? (
          <RowView shown={item} delivered={at === lastOwn} threadId={conversation.value.welcome?.rootThreadId} />
        ) : null}
        {item.kind === "draft" ? <DraftView draft={item.draft} /> : null}
        {item.kind === "pending" ? <PendingMessage entry={item.entry} /> : null}
      </div>
    );
  });
}

function Refusals(props: { onTakeBack: (text: string) => void }) {
  return outbox.value.refusals.map(({ frame, message }) => (
    <div class="note note-bad" role="alert" key={frame.clientMsgId}>
      <span>
        {message}
        {frame.t === "send" ? <q class="plain">{frame.text}</q> : null}
      </span>
      {frame.t === "send" ? (
        <button
          type="button"
          class="btn"
          onClick={() => {
            props.onTakeBack(frame.text);
            dropRefusal(frame.clientMsgId);
          }}
        >
          Edit
        </button>
      ) : null}
      <button type="button" class="btn btn-bare" onClick={() => dropRefusal(frame.clientMsgId)}>
        Dismiss
      </button>
    </div>
  ));
}

/** Keeps the end in sight while the reader is there, and never moves what somebody reads. */
function useStickToEnd(list: readonly Item[]) {
  const scroller = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  const [below, setBelow] = useState(false);
  const toEnd = () => {
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  };
  useLayoutEffect(() => {
    if (atEnd.current) toEnd();
    else setBelow(true);
  }, [list]);
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const observer = new ResizeObserver(() => {
      if (atEnd.current) toEnd();
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => {
    const box = scroller.current;
    if (!box) return;
    atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    if (atEnd.current) setBelow(false);
  };
  return { scroller, onScroll, below, toEnd, stick: () => (atEnd.current = true) };
}

function App() {
  const list = items.value;
  const end = useStickToEnd(list);
  const [given, setGiven] = useState<{ text: string; at: number } | null>(null);
  const give = (text: string) => setGiven({ text, at: Date.now() });
  const fresh = list.length === 0 && conversation.value.caughtUp;
  return (
    <>
      <Header />
      <Notes />
      <main class="talk" ref={end.scroller} onScroll={end.onScroll} aria-label="Conversation" tabIndex={-1}>
        {fresh ? <Welcome onPick={give} /> : null}
        <Items list={list} />
        <Refusals onTakeBack={give} />
      </main>
      {end.below ? (
        <button type="button" class="btn newer" onClick={end.toEnd}>
          <DownIcon />
          Newer messages
        </button>
      ) : null}
      <footer class="bottom">
        <Composer
          draftKey="draft:root"
          label="Message"
          placeholder="Write a message …"
          autoFocus={shown.value}
          given={given}
          onSend={(text) => {
            end.stick();
            say(null, text);
          }}
        />
      </footer>
      <p class="hidden-visually" aria-live="polite">
        {spoken.value}
      </p>
    </>
  );
}

const place = document.getElementById("app");
if (place) render(<App />, place);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing) tellHost({ switchyard: 1, kind: "close" });
});
let unseen = 0;
effect(() => {
  if (shown.value) unseen = 0;
  tellHost({ switchyard: 1, kind: "attention", count: waiting.value + unseen });
});
effect(() => {
  if (spoken.value !== "" && !shown.peek()) {
    unseen++;
    tellHost({ switchyard: 1, kind: "attention", count: waiting.peek() + unseen });
  }
});
meetHost(start);
