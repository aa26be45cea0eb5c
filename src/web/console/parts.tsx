// Small parts that every page of the console uses.
import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { BoardTask } from "../../protocol/board.ts";
import { messageOf } from "../../protocol/fault.ts";
import { nowMs } from "../shared/clock.ts";
import { StateMark } from "../shared/icons.tsx";
import { actionsOf, statusView } from "../shared/status.ts";
import { ago, elapsed, exact } from "../shared/time.ts";
import { linkOf, placeOf } from "./model.ts";
import { api, change, question, route } from "./store.ts";

const typingMs = 200;

export const Ago = (props: { atMs: number }) => (
  <time dateTime={new Date(props.atMs).toISOString()} title={exact(props.atMs)}>
    {ago(props.atMs, nowMs.value)}
  </time>
);

/** An id, as a link where it leads somewhere. */
export function Id(props: { id: string }) {
  const href = linkOf(props.id);
  const short = props.id.length > 18 ? `${props.id.slice(0, 14)}…` : props.id;
  return href === null ? (
    <span class="id mono" title={props.id}>
      {short}
    </span>
  ) : (
    <a class="id mono" href={href} title={props.id}>
      {short}
    </a>
  );
}

/** Where a panel of this title begins. */
export const headingOf = (title: string): string => `h-${title.replaceAll(/\W+/g, "-").toLowerCase()}`;

export function Panel(props: {
  title: string;
  count?: number | undefined;
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}) {
  const id = headingOf(props.title);
  return (
    <section class={`panel ${props.class ?? ""}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id} tabIndex={-1}>
          {props.title}
          {props.count === undefined ? null : <span class="count">{props.count}</span>}
        </h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

/** A line to copy: a command or a link. */
export function CopyLine(props: { text: string; label: string }) {
  const [word, setWord] = useState("Copy");
  const copy = () => {
    navigator.clipboard.writeText(props.text).then(
      () => setWord("Copied"),
      () => setWord("Select and copy by hand"),
    );
  };
  return (
    <div class="copy-line">
      <code>{props.text}</code>
      <button type="button" class="btn" aria-label={`${word}: ${props.label}`} onClick={copy}>
        {word}
      </button>
    </div>
  );
}

/** A text that scrolls by itself when it is long: then the keyboard reaches it too. `focus`: it was asked for, and is read next. */
export function ScrollText(props: { class: string; text: string; focus?: boolean }) {
  const box = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (element) element.tabIndex = element.scrollHeight > element.clientHeight ? 0 : -1;
  });
  useEffect(() => {
    if (props.focus) box.current?.focus();
  }, []);
  return (
    <p ref={box} class={props.class} dir="auto">
      {props.text}
    </p>
  );
}

export const Empty = (props: { children: ComponentChildren }) => <div class="empty muted">{props.children}</div>;

/** Asks before a task is stopped; says what that does. */
export function askStop(task: { taskId: string; title: string; machine?: string | undefined }): void {
  question.value = {
    title: `Stop “${task.title}”?`,
    text: `Its commands${task.machine ? ` on ${task.machine}` : ""} are ended and what it has not sent yet is dropped. What was said stays. It can be asked for again.`,
    yes: "Stop it",
    run: () => change(() => api("POST", `tasks/${task.taskId}/cancel`), "The task is being stopped."),
  };
}

const canStop = (task: BoardTask): boolean => actionsOf(task).includes("stop");

export function TaskRow(props: { task: BoardTask }) {
  const { task } = props;
  const view = statusView(task);
  return (
    <li class="task-row">
      <a class="row-link" href={`#/task/${task.taskId}`} data-row>
        <span class="task-title" dir="auto">
          {task.title}
        </span>
        <StateMark view={view} />
        <span class="task-facts muted">
          <span>
            {task.askedBy} · {placeOf(task)}
            {task.machine ? ` · ${task.machine}` : ""}
          </span>
          {task.endedMs === undefined ? null : <Ago atMs={task.endedMs} />}
          {view.open && task.line ? <span class={view.forYou ? "task-line task-asks" : "mono task-line"}>{task.line}</span> : null}
        </span>
        <span class="elapsed" title={`Started ${exact(task.startedMs)}`}>
          {elapsed(task, nowMs.value)}
        </span>
      </a>
      {canStop(task) ? (
        <button type="button" class="btn btn-bare" aria-label={`Stop “${task.title}”`} onClick={() => askStop(task)}>
          Stop
        </button>
      ) : null}
    </li>
  );
}

/** The end of a form in a dialog: what is wrong with it, and the two ways out, without a change or with what it says. */
export const FormEnd = (props: { wrong: string | null; submit: string; onClose: () => void }) => (
  <>
    {props.wrong === null ? null : (
      <p class="tone-bad wide" role="alert">
        {props.wrong}
      </p>
    )}
    <p class="dialog-buttons wide">
      <button type="button" class="btn" onClick={props.onClose}>
        Cancel
      </button>
      <button type="submit" class="btn btn-main">
        {props.submit}
      </button>
    </p>
  </>
);

/** A native dialog that is open while it is on the page. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={props.onClose}>
      <h2 id="dialog-title" dir="auto">
        {props.title}
      </h2>
      {props.children}
    </dialog>
  );
}

export type Loaded<T> = { kind: "loading" } | { kind: "here"; value: T } | { kind: "failed"; message: string; again: () => void };

/** Reads an answer of the API; reads it again when `version` changes, and keeps the old one in sight meanwhile. */
export function useAnswer<T>(path: string, version: unknown = 0): Loaded<T> {
  const state = useSignal<Loaded<T> & { path?: string }>({ kind: "loading" });
  const attempt = useSignal(0);
  useEffect(() => {
    let current = true;
    api<T>("GET", path).then(
      (value) => {
        if (current) state.value = { kind: "here", value, path };
      },
      (error: unknown) => {
        if (current) state.value = { kind: "failed", message: messageOf(error), again: () => attempt.value++, path };
      },
    );
    return () => {
      current = false;
    };
  }, [path, version, attempt.value]);
  return state.value.path === path ? state.value : { kind: "loading" };
}

/** What moves often, told at once and then after a pause: what is read for it is not read anew for each move. */
export function usePaced<T>(value: T, pauseMs: number): T {
  const paced = useSignal(value);
  const toldMs = useRef(Date.now());
  useEffect(() => {
    if (paced.peek() === value) return;
    const timer = setTimeout(
      () => {
        toldMs.current = Date.now();
        paced.value = value;
      },
      Math.max(0, toldMs.current + pauseMs - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [value, pauseMs]);
  return paced.value;
}

/** A field whose words narrow what stands below it. */
export const FindField = (props: { id?: string; label: string; words: Signal<string> }) => (
  <input
    id={props.id}
    class="field"
    type="search"
    aria-label={props.label}
    placeholder={props.label}
    value={props.words.value}
    onInput={(event) => {
      props.words.value = event.currentTarget.value;
    }}
  />
);

/** Words once the typing pauses: nobody is asked about each letter. */
export function useTyped(words: string): string {
  const typed = useSignal(words);
  useEffect(() => {
    const timer = setTimeout(() => {
      typed.value = words;
    }, typingMs);
    return () => clearTimeout(timer);
  }, [words]);
  return typed.value;
}

/** What an answer looks like while it is on its way, and when it does not come. */
export function Answer<T>(props: { of: Loaded<T>; children: (value: T) => ComponentChildren }) {
  switch (props.of.kind) {
    case "loading":
      return <Empty>Reading …</Empty>;
    case "failed":
      return (
        <div class="empty" role="alert">
          <p>{props.of.message}</p>
          <p class="row-buttons">
            <button type="button" class="btn" onClick={props.of.again}>
              Try again
            </button>
            {route.value.page === "now" ? null : (
              <a class="btn btn-bare" href="#/">
                Back to the first screen
              </a>
            )}
          </p>
        </div>
      );
    case "here":
      return <>{props.children(props.of.value)}</>;
  }
}
