// What went wrong and still needs somebody, as one list: what happened, what was kept, what to do. Made of what other pages show each in
// its place; nothing is stored for it.
import type { BoardEndpoint, BoardNotice, BoardTask } from "../../protocol/board.ts";
import type { GitHubSetUpAnswer, LimitedPlace } from "../../protocol/console.ts";
import type { ScheduleLine } from "../../protocol/schedule.ts";
import type { SpeculationFigures } from "../../protocol/speculation.ts";
import { duration } from "../shared/time.ts";

export type Known = {
  notices: readonly BoardNotice[];
  endpoints: readonly BoardEndpoint[];
  tasks: readonly BoardTask[];
  schedules: readonly ScheduleLine[];
  figures: readonly SpeculationFigures[];
  hooks: GitHubSetUpAnswer["hooks"];
  limited: readonly LimitedPlace[];
};

export type Incident = {
  key: string;
  kind: string;
  /** `asks`: it waits for a person's word. */
  weight: "bad" | "asks" | "quiet";
  /** Null: since when is not known. */
  atMs: number | null;
  what: string;
  kept: string;
  todo: string;
  link: { text: string; href: string };
  /** To be run on the machine. */
  paste?: string;
  /** The notice, which goes by a press. */
  notice?: string;
};

const dayMs = 24 * 60 * 60_000;
/** A laptop sleeps over a weekend; one that nothing waits for is missed only after that. */
const deadMs = 3 * dayMs;
/** A failure that nobody looked at for so long is none any more. */
const lookBackMs = 7 * dayMs;

const placeLink = ({ taskId, threadId }: BoardNotice): Incident["link"] =>
  taskId !== undefined
    ? { text: "Open its task", href: `#/task/${taskId}` }
    : threadId !== undefined
      ? { text: "Open its thread", href: `#/thread/${threadId}` }
      : { text: "To the first page", href: "#/" };

function ofNotice(notice: BoardNotice): Incident[] {
  const said = { key: notice.id, atMs: notice.atMs, what: notice.text, link: placeLink(notice) };
  switch (notice.kind) {
    case "offer":
      return [];
    case "question":
      return [
        {
          ...said,
          kind: "Undecided",
          weight: "asks",
          kept: "The message, with all that was tried. Nothing was done.",
          todo: "Answer it on the first page: your words go to whoever asked.",
          link: { text: "Answer", href: "#/" },
        },
      ];
    case "refusal":
      return [
        {
          ...said,
          kind: "Refused",
          weight: "quiet",
          kept: "The message. Nothing was started.",
          todo: "If it should be done, ask for it yourself, or give that person a link of their own under People.",
          notice: notice.id,
        },
      ];
    case "fault":
      return [
        {
          ...said,
          kind: "Fault",
          weight: "bad",
          kept: notice.id.startsWith("outbound:")
            ? "Its words, with each try to send them. They are not sent a second time by themselves."
            : "What was said and decided until then.",
          todo: "Look at it; if it is still wanted, ask for it again.",
          notice: notice.id,
        },
      ];
  }
}

const ofTask = (task: BoardTask): Incident => ({
  key: task.taskId,
  kind: "Task failed",
  weight: "bad",
  atMs: task.endedMs ?? task.updatedMs,
  what: task.line === "" ? task.title : `${task.title}: ${task.line}`,
  kept: "All that it did and read, in its timeline. It goes on from there.",
  todo: "Try it again, or reject its outcome: then it is no longer listed here.",
  link: { text: "Open it", href: `#/task/${task.taskId}` },
});

function ofMachine(machine: BoardEndpoint, nowMs: number): Incident[] {
  const { endpointId, name, online, waiting, running, sinceMs } = machine;
  if (online || (waiting + running === 0 && nowMs - sinceMs < deadMs)) return [];
  const works = waiting === 1 ? "1 command waits" : `${waiting} commands wait`;
  const was =
    running === 0 ? "" : ` ${running === 1 ? "1 was" : `${running} were`} running: how it ended is told when the machine is back.`;
  return [
    {
      key: endpointId,
      kind: "Machine away",
      weight: waiting + running > 0 ? "bad" : "quiet",
      atMs: sinceMs,
      what: `${name} has been offline for ${duration(nowMs - sinceMs)}${waiting > 0 ? `, and ${works} for it` : ""}.`,
      kept: waiting + running === 0 ? "Its key and its folders: it comes back as it was." : `Its queue, in order.${was}`,
      todo: "Start the daemon there. If the machine is gone for good, revoke it: what waits is then refused, and its tasks are told.",
      link: { text: "Machines", href: "#/machines" },
      paste: "npm run daemon -- run",
    },
  ];
}

/** One that a person paused is no incident: only what paused itself has a reason. */
const ofSchedule = ({ id, name, why, runs }: ScheduleLine): Incident => ({
  key: id,
  kind: "Schedule paused",
  weight: "bad",
  atMs: runs[0]?.atMs ?? null,
  what: `“${name}” paused itself: ${why}`,
  kept: "The schedule, and a receipt for each of its runs.",
  todo: "Look at its last task, mend what failed, then resume it.",
  link: { text: "Schedules", href: "#/schedules" },
});

const ofPolicy = ({ policyId, paused }: SpeculationFigures): Incident => ({
  key: `policy ${policyId}`,
  kind: "Policy paused",
  weight: "quiet",
  atMs: null,
  what: `“${policyId}” starts no more work by itself: ${paused}.`,
  kept: "What it began, with what became of it. Work that people ask for is not concerned.",
  todo: "Look at what it did; saving the policy again starts it anew.",
  link: { text: "Rules", href: "#/rules" },
});

const ofHook = ({ of, place, problem, sweptMs, givenUp }: GitHubSetUpAnswer["hooks"][number]): Incident => ({
  key: `hook ${of} ${place}`,
  kind: "Webhook",
  weight: "bad",
  atMs: sweptMs,
  what: `GitHub could not be asked what it failed to deliver for ${place}: ${problem}`,
  kept: `GitHub keeps a delivery for three days, and it is asked again with growing waits.${givenUp > 0 ? ` ${givenUp} could not be had.` : ""}`,
  todo: "Look at Set-up on the first page: the step that is open says what is missing.",
  link: { text: "Set-up", href: "#/" },
});

const ofLimit = ({ source, place, sender, refused, lastMs }: LimitedPlace): Incident => ({
  key: `limit ${source} ${place} ${sender}`,
  kind: "Asked to wait",
  weight: "quiet",
  atMs: lastMs,
  what: `${place || source} brought more than the door lets in: ${refused} ${refused === 1 ? "event was" : "events were"} refused.`,
  kept: "Nothing of them. Each sender was told when to come back; what GitHub brought is asked for again, once Set-up is done.",
  todo: "If that is too little for you, raise DOOR_LIMIT_FACTOR.",
  link: { text: "Rules", href: "#/rules" },
});

/** All that still needs somebody, the latest first. */
export function incidentsOf(known: Known, nowMs: number): Incident[] {
  const schedules = known.schedules.filter(({ state, why }) => state === "paused" && why !== "");
  const policies = known.figures.filter(({ paused }) => paused !== null);
  // What paused itself is told by a notice too, until somebody dismisses that: it stands here once.
  const names = [...schedules.map(({ name }) => name), ...policies.map(({ policyId }) => policyId)];
  const notices = known.notices.filter(({ kind, text }) => kind !== "fault" || !names.some((name) => text.includes(`“${name}”`)));
  const failed = known.tasks.filter(
    (task) => task.status === "failed" && task.accepted === undefined && nowMs - (task.endedMs ?? task.updatedMs) < lookBackMs,
  );
  return [
    ...notices.flatMap(ofNotice),
    ...failed.map(ofTask),
    ...known.endpoints.flatMap((machine) => ofMachine(machine, nowMs)),
    ...schedules.map(ofSchedule),
    ...policies.map(ofPolicy),
    ...known.hooks.filter(({ problem }) => problem !== null).map(ofHook),
    ...known.limited.filter(({ lastMs }) => nowMs - lastMs < dayMs).map(ofLimit),
  ].sort((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0));
}
