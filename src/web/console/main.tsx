// The console's page: sign-in, navigation, keyboard, and the page of the route.
import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { BoardState } from "../../protocol/board.ts";
import { DoorError } from "../shared/fetch-json.ts";
import { ChevronIcon, Mark } from "../shared/icons.tsx";
import { CostsPage } from "./costs.tsx";
import { DecisionPage, TaskPage, ThreadPage, WhyPage } from "./detail.tsx";
import { IncidentsPage } from "./incidents.tsx";
import { help, listenToKeys } from "./keys.ts";
import { MachinesPage } from "./machines.tsx";
import { FactPage, MemoryPage } from "./memory.tsx";
import { linkOf, type Route } from "./model.ts";
import { DecisionsPage, NowPage, TasksPage } from "./now.tsx";
import { Dialog, Empty } from "./parts.tsx";
import { PeoplePage } from "./people.tsx";
import { ProfilesPage } from "./profiles.tsx";
import { ProposalsPage } from "./proposals.tsx";
import { RulesPage } from "./rules.tsx";
import { SchedulesPage } from "./schedules.tsx";
import { SearchPage } from "./search.tsx";
import { access, board, follow, live, query, question, route, search, signIn, signOut, toast, waitingForYou } from "./store.ts";
import { ThreadsPage } from "./threads.tsx";

function SignIn(props: { message: string | null }) {
  const [token, setToken] = useState("");
  const [state, setState] = useState<{ busy: boolean; message: string | null }>({ busy: false, message: props.message });
  const submit = async () => {
    setState({ busy: true, message: null });
    try {
      await signIn(token.trim());
    } catch (error) {
      setState({ busy: false, message: error instanceof DoorError ? error.message : String(error) });
    }
  };
  return (
    <main class="sign-in">
      <Mark />
      <h1>Console</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <input class="hidden-visually" type="text" autoComplete="username" value="operator" readOnly tabIndex={-1} aria-hidden="true" />
        <label>
          <span>Operator token</span>
          <input
            class="field"
            type="password"
            autoComplete="current-password"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="btn btn-main">
          {state.busy ? "Signing in …" : "Sign in"}
        </button>
      </form>
      {state.message ? (
        <p class="tone-bad" role="alert">
          {state.message}
        </p>
      ) : (
        <p class="muted">
          A local start prints the token. In a deployment it is the secret <code>OPERATOR_TOKEN</code>.
        </p>
      )}
    </main>
  );
}

const pages: [string, string, Route["page"]][] = [
  ["#/", "Now", "now"],
  ["#/tasks", "Tasks", "tasks"],
  ["#/threads", "Threads", "threads"],
  ["#/decisions", "Decisions", "decisions"],
  ["#/machines", "Machines", "machines"],
  ["#/schedules", "Schedules", "schedules"],
  ["#/memory", "Memory", "memory"],
  ["#/people", "People", "people"],
  ["#/rules", "Rules", "rules"],
  ["#/profiles", "Profiles", "profiles"],
  ["#/incidents", "Incidents", "incidents"],
  ["#/costs", "Costs", "costs"],
];

const nameOf = ({ page }: Route): string =>
  pages.find(([, , known]) => known === page)?.[1] ?? page.charAt(0).toUpperCase() + page.slice(1);

const Waiting = () =>
  waitingForYou.value > 0 ? (
    <span class="count count-asks">
      {waitingForYou.value}
      <span class="hidden-visually"> waiting for you</span>
    </span>
  ) : null;

/** The pages: a row of links, and where there is no room for it, behind a button. */
function Pages() {
  const unfolded = useSignal(false);
  useEffect(() => {
    unfolded.value = false;
  }, [route.value]);
  return (
    <>
      <button
        id="pages-button"
        type="button"
        class="btn pages-button"
        aria-expanded={unfolded.value}
        aria-controls="pages"
        onClick={() => {
          unfolded.value = !unfolded.value;
        }}
      >
        <span class="hidden-visually">Pages, now at: </span>
        {nameOf(route.value)}
        <Waiting />
        <ChevronIcon open={unfolded.value} />
      </button>
      <nav
        id="pages"
        aria-label="Pages"
        class={unfolded.value ? "unfolded" : ""}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || !unfolded.value) return;
          unfolded.value = false;
          document.getElementById("pages-button")?.focus();
        }}
      >
        {pages.map(([href, name, page]) => (
          <a key={href} href={href} aria-current={page === route.value.page ? "page" : undefined}>
            {name}
            {page === "now" ? <Waiting /> : null}
          </a>
        ))}
      </nav>
    </>
  );
}

const Top = () => (
  <header class="top">
    <button type="button" class="btn skip" onClick={() => document.querySelector<HTMLElement>("main")?.focus()}>
      Skip to the page
    </button>
    <a class="brand" href="#/">
      <Mark />
      Switchyard
    </a>
    <Pages />
    <search class="search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const href = linkOf(query.value.trim());
          if (href !== null) location.hash = href;
          else document.querySelector<HTMLElement>("[data-row]")?.focus();
        }}
      >
        <input
          id="search"
          class="field"
          type="search"
          aria-label="Search everything, or go to an id"
          placeholder="Search, or an id  ( / )"
          value={query.value}
          onInput={(event) => search(event.currentTarget.value)}
        />
      </form>
    </search>
    <p class="live">
      <span class={live.value ? "dot dot-on" : "dot"} aria-hidden="true" />
      {live.value ? "live" : "reconnecting"}
    </p>
    <button type="button" class="btn btn-bare" onClick={() => void signOut()}>
      Sign out
    </button>
  </header>
);

function Page(props: { board: BoardState }) {
  const at = route.value;
  useEffect(() => {
    document.title = `${nameOf(at)} · Switchyard`;
  }, [at]);
  switch (at.page) {
    case "now":
      return <NowPage board={props.board} />;
    case "tasks":
      return <TasksPage board={props.board} />;
    case "threads":
      return <ThreadsPage board={props.board} />;
    case "decisions":
      return <DecisionsPage board={props.board} />;
    case "proposals":
      return <ProposalsPage />;
    case "machines":
      return <MachinesPage board={props.board} />;
    case "schedules":
      return <SchedulesPage />;
    case "memory":
      return <MemoryPage />;
    case "people":
      return <PeoplePage />;
    case "rules":
      return <RulesPage />;
    case "profiles":
      return <ProfilesPage />;
    case "incidents":
      return <IncidentsPage board={props.board} />;
    case "costs":
      return <CostsPage board={props.board} />;
    case "task":
      return <TaskPage key={at.id} id={at.id} board={props.board} />;
    case "thread":
      return <ThreadPage key={at.id} id={at.id} board={props.board} />;
    case "trigger":
      return <WhyPage key={at.id} id={at.id} board={props.board} />;
    case "decision":
      return <DecisionPage key={at.id} id={at.id} />;
    case "fact":
      return <FactPage key={at.id} id={at.id} />;
    case "search":
      return <SearchPage board={props.board} />;
    case "unknown":
      return (
        <Empty>
          There is no page at {at.hash}. <a href="#/">Back to the first screen</a>
        </Empty>
      );
  }
}

function Dialogs() {
  const asked = question.value;
  const close = () => {
    question.value = null;
  };
  if (asked)
    return (
      <Dialog title={asked.title} onClose={close}>
        <p>{asked.text}</p>
        <p class="dialog-buttons">
          <button type="button" class="btn" onClick={close}>
            No, go back
          </button>
          <button
            type="button"
            class="btn btn-main"
            onClick={() => {
              close();
              void asked.run();
            }}
          >
            {asked.yes}
          </button>
        </p>
      </Dialog>
    );
  if (help.value)
    return (
      <Dialog
        title="Keyboard"
        onClose={() => {
          help.value = false;
        }}
      >
        <dl class="keys">
          {[
            ["/", "search everything, or go to an id"],
            ["j  k", "next and previous row"],
            ["Enter", "open the row"],
            ["?", "this help"],
            ["Esc", "close"],
          ].map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <form method="dialog" class="dialog-buttons">
          <button type="submit" class="btn">
            Close
          </button>
        </form>
      </Dialog>
    );
  return null;
}

function App() {
  switch (access.value.kind) {
    case "unknown":
      return <main class="sign-in muted">Connecting …</main>;
    case "out":
      return <SignIn message={access.value.message} />;
    case "in":
      return (
        <>
          <Top />
          <main class="page" tabIndex={-1}>
            <h1 class="hidden-visually">{nameOf(route.value)}, in the console</h1>
            {board.value ? <Page board={board.value} /> : <Empty>Connecting …</Empty>}
          </main>
          <Dialogs />
          <p class={toast.value === null ? "hidden-visually" : "toast"} role="status">
            {toast.value}
          </p>
        </>
      );
  }
}

const place = document.getElementById("app");
if (place) render(<App />, place);
listenToKeys();
follow();
