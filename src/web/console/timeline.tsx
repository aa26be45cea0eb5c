// A task's timeline: the event log made readable, one track a lane.
import { useSignal } from "@preact/signals";
import { type TimelineEntry, timelineLanes } from "../../protocol/console.ts";
import { duration, exact, offset } from "../shared/time.ts";
import { describeEvent, type Filter, filters } from "./describe.ts";
import { Empty, Id, ScrollText } from "./parts.tsx";

const quietGapMs = 30_000;
const filterWords: Record<Filter, string> = { said: "Said", decided: "Decided", model: "Model", work: "Work", detail: "Details" };

const Tracks = (props: { lane: number }) => (
  <span class="tracks" aria-hidden="true">
    {timelineLanes.map((lane, at) => (
      <span key={lane} class={at === props.lane ? "track track-on" : "track"} />
    ))}
  </span>
);

export function Timeline(props: { entries: readonly TimelineEntry[]; startMs: number }) {
  const off = useSignal<ReadonlySet<Filter>>(new Set(["detail"]));
  const lines = props.entries.map((entry) => ({ entry, line: describeEvent(entry.event) }));
  const shown = lines.filter(({ line }) => !off.value.has(line.filter));
  const toggle = (filter: Filter) => {
    const next = new Set(off.value);
    if (!next.delete(filter)) next.add(filter);
    off.value = next;
  };
  let before: number | null = null;
  return (
    <div>
      <fieldset class="filters">
        <legend class="hidden-visually">Show in the timeline</legend>
        {filters.map((filter) => (
          <button key={filter} type="button" class="btn" aria-pressed={!off.value.has(filter)} onClick={() => toggle(filter)}>
            {filterWords[filter]}
            <span class="count">{lines.filter(({ line }) => line.filter === filter).length}</span>
          </button>
        ))}
      </fieldset>
      {shown.length === 0 ? <Empty>Nothing of this kind has happened.</Empty> : null}
      <ol class="timeline">
        {shown.map(({ entry, line }) => {
          const gapMs = before === null ? 0 : entry.atMs - before;
          before = entry.atMs;
          return (
            <li key={`${entry.object}:${entry.seq}`} class={gapMs > quietGapMs ? "after-gap" : undefined}>
              {gapMs > quietGapMs ? <p class="gap muted">{duration(gapMs)} later</p> : null}
              <div class="event">
                <time class="event-time muted" dateTime={new Date(entry.atMs).toISOString()} title={exact(entry.atMs)}>
                  {offset(entry.atMs - props.startMs)}
                </time>
                <Tracks lane={timelineLanes.indexOf(entry.lane)} />
                <span class="event-lane muted">{entry.lane}</span>
                <div class="event-text">
                  <p class={line.tone ? `tone-${line.tone}` : undefined}>{line.text}</p>
                  {line.detail ? (
                    <ScrollText
                      class={
                        entry.event.kind === "endpoint.command" || entry.event.kind === "task.tool" ? "event-detail mono" : "event-detail"
                      }
                      text={line.detail}
                    />
                  ) : null}
                  {line.ids.length > 0 ? (
                    <p class="event-ids">
                      {line.ids.slice(0, 6).map((id) => (
                        <Id key={id} id={id} />
                      ))}
                    </p>
                  ) : null}
                </div>
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
