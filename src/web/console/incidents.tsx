// Incidents: what went wrong and still needs somebody.
import type { BoardState } from "../../protocol/board.ts";
import type { GitHubSetUpAnswer, LimitsAnswer, TasksAnswer } from "../../protocol/console.ts";
import type { SchedulesAnswer } from "../../protocol/schedule.ts";
import type { SpeculationAnswer } from "../../protocol/speculation.ts";
import { nowMs } from "../shared/clock.ts";
import { ShapeIcon } from "../shared/icons.tsx";
import { type Incident, incidentsOf } from "./incidents-model.ts";
import { mergeTasks } from "./model.ts";
import { Ago, Answer, CopyLine, Empty, type Loaded, Panel, ScrollText, useAnswer, usePaced } from "./parts.tsx";
import { api, change } from "./store.ts";

const pauseMs = 10_000;

const looks = {
  bad: { tone: "bad", shape: "cross" },
  asks: { tone: "wait", shape: "diamond" },
  quiet: { tone: "quiet", shape: "square" },
} as const;

/** Which one, where it is heard and not seen: one label a row, and none of them long. */
const about = ({ what }: Incident): string => (what.length > 80 ? `${what.slice(0, 80)}…` : what);

const IncidentRow = ({ incident }: { incident: Incident }) => (
  <li class="notice">
    <p class="notice-head">
      <span class={`state tone-${looks[incident.weight].tone}`}>
        <ShapeIcon shape={looks[incident.weight].shape} />
        {incident.kind}
      </span>
      <span class="muted">{incident.atMs === null ? null : <Ago atMs={incident.atMs} />}</span>
      <a class="row-action" href={incident.link.href} aria-label={`${incident.link.text}: ${about(incident)}`} data-row>
        {incident.link.text}
      </a>
    </p>
    <ScrollText class="notice-text" text={incident.what} />
    <dl class="incident-facts">
      <dt class="muted">Kept</dt>
      <dd>{incident.kept}</dd>
      <dt class="muted">To do</dt>
      <dd>{incident.todo}</dd>
    </dl>
    {incident.paste === undefined ? null : <CopyLine text={incident.paste} label="command" />}
    {incident.notice === undefined ? null : (
      <p class="notice-form">
        <button
          type="button"
          class="btn btn-bare"
          aria-label={`Dismiss: ${about(incident)}`}
          onClick={() => void change(() => api("POST", `notices/${incident.notice}/answer`), "Dismissed.")}
        >
          Dismiss
        </button>
      </p>
    )}
  </li>
);

/** The whole list is shown when all of it is known: a list that says that nothing is wrong must not say so too early. */
function useAll(version: unknown): Loaded<{
  tasks: TasksAnswer;
  schedules: SchedulesAnswer;
  speculation: SpeculationAnswer;
  github: GitHubSetUpAnswer;
  limits: LimitsAnswer;
}> {
  const parts = {
    tasks: useAnswer<TasksAnswer>("tasks?limit=200", version),
    schedules: useAnswer<SchedulesAnswer>("schedules", version),
    speculation: useAnswer<SpeculationAnswer>("speculation", version),
    github: useAnswer<GitHubSetUpAnswer>("github", version),
    limits: useAnswer<LimitsAnswer>("rules/limits", version),
  };
  const { tasks, schedules, speculation, github, limits } = parts;
  for (const part of Object.values(parts)) if (part.kind === "failed") return part;
  return tasks.kind === "here" &&
    schedules.kind === "here" &&
    speculation.kind === "here" &&
    github.kind === "here" &&
    limits.kind === "here"
    ? {
        kind: "here",
        value: {
          ...{ tasks: tasks.value, schedules: schedules.value, speculation: speculation.value },
          ...{ github: github.value, limits: limits.value },
        },
      }
    : { kind: "loading" };
}

export function IncidentsPage(props: { board: BoardState }) {
  const { board } = props;
  const all = useAll(usePaced(board, pauseMs));
  const incidents =
    all.kind !== "here"
      ? []
      : incidentsOf(
          {
            notices: board.notices,
            endpoints: board.endpoints,
            tasks: mergeTasks(board.tasks, all.value.tasks.tasks),
            schedules: all.value.schedules.schedules,
            figures: all.value.speculation.figures,
            hooks: all.value.github.hooks,
            limited: all.value.limits.limited,
          },
          nowMs.value,
        );
  return (
    <Panel title="Incidents" count={all.kind === "here" ? incidents.length : undefined}>
      <Answer of={all}>
        {() =>
          incidents.length === 0 ? (
            <Empty>
              Nothing needs you. What goes wrong stands here, with what was kept and what to do: a task that failed, a machine that work
              waits for, a message that could not be sent or decided, a schedule that paused itself.
            </Empty>
          ) : (
            <ul class="list">
              {incidents.map((incident) => (
                <IncidentRow key={incident.key} incident={incident} />
              ))}
            </ul>
          )
        }
      </Answer>
    </Panel>
  );
}
