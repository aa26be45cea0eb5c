// The search page: tasks, threads, decisions and facts that the router keeps, and what is set up, found by words as they are typed.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { BoardState } from "../../protocol/board.ts";
import type {
  EndpointsAnswer,
  FoundLine,
  PeopleAnswer,
  PoliciesAnswer,
  ProfilesAnswer,
  RulesAnswer,
  SearchAnswer,
  TasksAnswer,
} from "../../protocol/console.ts";
import type { SchedulesAnswer } from "../../protocol/schedule.ts";
import { filterTasks, holdsWords, linkOf, mergeTasks, sortTasks } from "./model.ts";
import { Ago, Empty, type Loaded, Panel, TaskRow, useAnswer, useTyped } from "./parts.tsx";
import { findSetUps } from "./search-model.ts";
import { query } from "./store.ts";
import { asTitle, decisionWords } from "./tool-words.ts";

const shownTasks = 20;
const shownSetUps = 20;

const kindWords: Record<FoundLine["kind"], string> = { task: "Task", thread: "Thread", decision: "Decision", fact: "Remembered" };

/** A decision is found by the name of its tool as well. */
const titleOf = ({ kind, title, text }: FoundLine): string =>
  kind === "fact" ? "" : kind === "decision" ? `${asTitle(decisionWords({ tool: title, reason: text }))} (${title})` : title;

const here = <T,>(answer: Loaded<T>): T | undefined => (answer.kind === "here" ? answer.value : undefined);

function useSetUps() {
  return {
    schedules: here(useAnswer<SchedulesAnswer>("schedules"))?.schedules,
    machines: here(useAnswer<EndpointsAnswer>("endpoints"))?.endpoints,
    people: here(useAnswer<PeopleAnswer>("people"))?.people,
    policies: here(useAnswer<PoliciesAnswer>("policies"))?.policies,
    rules: here(useAnswer<RulesAnswer>("rules"))?.inForce.rules,
    profiles: here(useAnswer<ProfilesAnswer>("profiles"))?.profiles,
  };
}

/** What the router finds; the last answer stays in sight while the next one is on its way. */
function useFound(words: string): { words: string; answer: SearchAnswer } | null {
  const typed = useTyped(words);
  const last = useSignal<{ words: string; answer: SearchAnswer } | null>(null);
  const answer = here(useAnswer<SearchAnswer>(`search?q=${encodeURIComponent(typed)}`));
  useEffect(() => {
    if (answer) last.value = { words: typed, answer };
  }, [answer]);
  return last.value;
}

function Line(props: { what: string; href: string | null; title: string; text: string; atMs?: number }) {
  const { what, href, title, text, atMs } = props;
  const inside = (
    <>
      <span class="found-what muted">{what}</span>
      <span class="found-text">
        <span dir="auto">{title || text}</span>
        {title === "" ? null : (
          <span class="muted fine-print found-more" dir="auto">
            {text}
          </span>
        )}
      </span>
      <span class="elapsed fine-print">{atMs === undefined ? null : <Ago atMs={atMs} />}</span>
    </>
  );
  return (
    <li>
      {href === null ? (
        <div class="found">{inside}</div>
      ) : (
        <a class="row-link found" href={href} data-row>
          {inside}
        </a>
      )}
    </li>
  );
}

export function SearchPage(props: { board: BoardState }) {
  const words = query.value.trim();
  const stored = here(useAnswer<TasksAnswer>("tasks?limit=200"));
  const setUps = useSetUps();
  const found = useFound(words);
  if (words === "")
    return (
      <Panel title="Search">
        <Empty>
          Type what you look for: tasks, threads, decisions, what is remembered, and what is set up here. An id leads straight to what it
          names.
        </Empty>
      </Panel>
    );
  const tasks = sortTasks(filterTasks(mergeTasks(props.board.tasks, stored?.tasks ?? []), words)).slice(0, shownTasks);
  const answered = found?.words === words;
  // Of the answer before, only what holds the new words too: the keyboard must not be led to a row that is about to go.
  const hits = (found?.answer.hits ?? []).filter(
    ({ id, title, text }) => !tasks.some((task) => task.taskId === id) && (answered || holdsWords(`${title} ${text}`, words)),
  );
  const more = answered ? Math.max(0, found.answer.total - found.answer.hits.length) : 0;
  const lines = findSetUps(setUps, words);
  const settled = answered && stored !== undefined;
  return (
    <div class="stack">
      {tasks.length === 0 ? null : (
        <Panel title="Tasks" count={tasks.length}>
          <ul class="list">
            {tasks.map((task) => (
              <TaskRow key={task.taskId} task={task} />
            ))}
          </ul>
        </Panel>
      )}
      {hits.length === 0 ? null : (
        <Panel title="Kept by the router" count={hits.length + more}>
          <ul class="list">
            {hits.map((hit) => (
              <Line key={hit.id} what={kindWords[hit.kind]} href={linkOf(hit.id)} title={titleOf(hit)} text={hit.text} atMs={hit.atMs} />
            ))}
          </ul>
          {more === 0 ? null : <p class="panel-note muted">And {more} more: another word narrows it down.</p>}
        </Panel>
      )}
      {lines.length === 0 ? null : (
        <Panel title="Set up here" count={lines.length}>
          <ul class="list">
            {lines.slice(0, shownSetUps).map(({ key, ...line }) => (
              <Line key={key} {...line} />
            ))}
          </ul>
          {lines.length <= shownSetUps ? null : (
            <p class="panel-note muted">And {lines.length - shownSetUps} more: another word narrows it down.</p>
          )}
        </Panel>
      )}
      {tasks.length + hits.length + lines.length > 0 ? null : (
        <Panel title="Search">
          <Empty>{settled ? `Nothing holds “${words}”.` : "Searching …"}</Empty>
        </Panel>
      )}
    </div>
  );
}
