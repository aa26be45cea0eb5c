// Schedules: what happens at a time by itself, how its last runs went, and a form for a new one.
import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { PeopleAnswer } from "../../protocol/console.ts";
import { messageOf } from "../../protocol/fault.ts";
import type { ScheduleLine, ScheduleRun, SchedulesAnswer } from "../../protocol/schedule.ts";
import { exact } from "../shared/time.ts";
import { Ago, Answer, Empty, Panel, useAnswer } from "./parts.tsx";
import { api, change, question, say } from "./store.ts";

type Kind = "cron" | "everyMinutes" | "afterMinutes" | "at";
/** In a box that is as wide as a phone an option has few words; what its value is stands over the value. */
const kinds: [Kind, option: string, label: string, value: () => string][] = [
  ["cron", "By the calendar", "Minute, hour, day, month, weekday (cron)", () => "0 9 * * 1-5"],
  ["everyMinutes", "At an interval", "Every so many minutes", () => "60"],
  ["afterMinutes", "Once, after a while", "In so many minutes", () => "10"],
  ["at", "Once, at a time", "Day and time", tomorrowMorning],
];

function tomorrowMorning(): string {
  const day = new Date(Date.now() + 24 * 60 * 60_000);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())} 09:00`;
}

export function SchedulesPage() {
  const version = useSignal(0);
  const schedules = useAnswer<SchedulesAnswer>("schedules", version.value);
  const people = useAnswer<PeopleAnswer>("people");
  const [name, setName] = useState("");
  const [text, setText] = useState("");
  const [personId, setPersonId] = useState("");
  const [kind, setKind] = useState<Kind>("cron");
  const [value, setValue] = useState("0 9 * * 1-5");
  const [zone, setZone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);

  const create = async () => {
    const time = { [kind]: kind === "everyMinutes" || kind === "afterMinutes" ? Number(value) : value, zone };
    try {
      await api("POST", "schedules", { name, text, personId, time });
      version.value++;
      setName("");
      setText("");
      say(`${name} is scheduled.`);
    } catch (error) {
      say(messageOf(error));
    }
  };
  const act = (schedule: ScheduleLine, what: "pause" | "resume") =>
    change(() => api("POST", `schedules/${schedule.id}/${what}`), `${schedule.name}: ${what}d.`).then(() => version.value++);
  const cancel = (schedule: ScheduleLine) => {
    question.value = {
      title: `Cancel the schedule “${schedule.name}”?`,
      text: "It does not come again. A run that is under way goes on.",
      yes: "Cancel the schedule",
      run: async () => {
        await change(() => api("POST", `schedules/${schedule.id}/cancel`), `${schedule.name} is cancelled.`);
        version.value++;
      },
    };
  };

  const list = (schedules: readonly ScheduleLine[]) => (
    <ul class="list">
      {schedules.map((schedule) => (
        <ScheduleRow key={schedule.id} schedule={schedule} onAct={(what) => void act(schedule, what)} onCancel={() => cancel(schedule)} />
      ))}
    </ul>
  );
  const over = schedules.kind === "here" ? schedules.value.schedules.filter((schedule) => !holds(schedule)) : [];

  return (
    <div class="stack">
      <Panel title="Schedules">
        <Answer of={schedules}>
          {(answer) =>
            answer.schedules.some(holds) ? (
              list(answer.schedules.filter(holds))
            ) : (
              <Empty>
                Nothing is scheduled. People of the team ask for it in the chat (“every day at 9 run the tests”), or make one below.
              </Empty>
            )
          }
        </Answer>
      </Panel>
      {over.length === 0 ? null : <Panel title="Over">{list(over)}</Panel>}
      <Panel title="A new schedule">
        <form
          class="invite"
          onSubmit={(event) => {
            event.preventDefault();
            void create();
          }}
        >
          <label>
            <span>Name</span>
            <input class="field" dir="auto" required maxLength={60} value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <label>
            <span>What is to be done</span>
            <input
              class="field"
              dir="auto"
              required
              maxLength={4000}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <label>
            <span>For whom: the answer comes into their chat</span>
            <select class="field" required value={personId} onChange={(event) => setPersonId(event.currentTarget.value)}>
              <option value="">Choose a person</option>
              {(people.kind === "here" ? people.value.people : [])
                .filter((person) => person.revokedMs === null)
                .map((person) => (
                  <option key={person.personId} value={person.personId}>
                    {person.name}
                  </option>
                ))}
            </select>
          </label>
          <label>
            <span>When</span>
            <select
              class="field"
              value={kind}
              onChange={(event) => {
                const chosen = kinds.find(([each]) => each === event.currentTarget.value) ?? kinds[0];
                if (chosen === undefined) return;
                setKind(chosen[0]);
                setValue(chosen[3]());
              }}
            >
              {kinds.map(([each, option]) => (
                <option key={each} value={each}>
                  {option}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span>{kinds.find(([each]) => each === kind)?.[2]}</span>
            <input class="field" required value={value} onInput={(event) => setValue(event.currentTarget.value)} />
          </label>
          <label>
            <span>Time zone</span>
            <input class="field" required value={zone} onInput={(event) => setZone(event.currentTarget.value)} />
          </label>
          <button type="submit" class="btn btn-main">
            Schedule it
          </button>
        </form>
      </Panel>
    </div>
  );
}

const holds = ({ state }: Pick<ScheduleLine, "state">): boolean => state === "active" || state === "paused";

/** When, in words, and where those are not the pattern itself, the pattern beside them. */
const wordsOf = ({ words, when }: Pick<ScheduleLine, "words" | "when">): string =>
  when.kind === "cron" && !words.startsWith(when.cron) ? `${words} · ${when.cron}` : words;

function ScheduleRow(props: { schedule: ScheduleLine; onAct: (what: "pause" | "resume") => void; onCancel: () => void }) {
  const { schedule } = props;
  return (
    <li class="machine-row">
      <span class="machine-text">
        <span dir="auto">
          {schedule.name} <span class="muted">· {wordsOf(schedule)}</span>
        </span>
        <span class="muted fine-print" dir="auto">
          {schedule.state === "active" && schedule.nextMs !== null ? `next ${exact(schedule.nextMs)}` : schedule.state}
          {schedule.why === "" ? "" : ` — ${schedule.why}`} · for {schedule.by.name} · “{schedule.text}”
        </span>
        {schedule.runs.slice(0, 5).map((run) => (
          <span class="muted fine-print" key={run.id} dir="auto">
            <Ago atMs={run.atMs} />: {runWords(run)}
            {run.taskId === null ? null : (
              <>
                {" · "}
                <a href={`#/task/${run.taskId}`}>its task</a>
              </>
            )}
          </span>
        ))}
      </span>
      {holds(schedule) ? (
        <span class="row-buttons">
          <button
            type="button"
            class="btn btn-bare"
            aria-label={`${schedule.state === "active" ? "Pause" : "Resume"} ${schedule.name}`}
            onClick={() => props.onAct(schedule.state === "active" ? "pause" : "resume")}
          >
            {schedule.state === "active" ? "Pause" : "Resume"}
          </button>
          <button type="button" class="btn" aria-label={`Cancel ${schedule.name}`} onClick={props.onCancel}>
            Cancel
          </button>
        </span>
      ) : null}
    </li>
  );
}

const deliveryWords: Record<ScheduleRun["delivery"], string> = {
  none: "nothing to say",
  pending: "not said yet",
  posted: "answer on its way",
  sent: "answer sent",
  confirmed: "answer seen where it was sent",
  failed: "answer not sent",
  unknown: "answer perhaps sent",
};

/** Two answers, never one: whether it ran, and whether people heard of it. */
function runWords(run: ScheduleRun): string {
  if (run.execution === "missed") return `missed ${run.missed === 1 ? "once" : `${run.missed} times`}: ${run.detail}`;
  const said = deliveryWords[run.delivery];
  return `run ${run.execution}, ${said}${run.detail !== "" && (run.delivery === "failed" || run.delivery === "unknown") ? `: ${run.detail}` : ""}`;
}
