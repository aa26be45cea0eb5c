// The first screen: what waits for me, what runs, what is wrong, what it cost.
import { useState } from "preact/hooks";
import type { BoardDecision, BoardEndpoint, BoardNotice, BoardState, BoardTask } from "../../protocol/board.ts";
import type { TasksAnswer } from "../../protocol/console.ts";
import { ShapeIcon } from "../shared/icons.tsx";
import { statusView } from "../shared/status.ts";
import { isWhole, mergeTasks, sortTasks, waitingOf } from "./model.ts";
import { Ago, Answer, CopyLine, Empty, Id, Panel, ScrollText, TaskRow, useAnswer } from "./parts.tsx";
import { Release } from "./proposals.tsx";
import { SetUp } from "./set-up.tsx";
import { api, board, change } from "./store.ts";
import { MonthPanel, TodayPanel } from "./today.tsx";
import { asTitle, decisionWords } from "./tool-words.ts";

const noticeWords = { question: "Question", offer: "Proposal", refusal: "Refused", fault: "Fault" } as const;
const noticeTones = { question: "wait", offer: "wait", refusal: "quiet", fault: "bad" } as const;
const noticeShapes = { question: "diamond", offer: "diamond", refusal: "square", fault: "cross" } as const;

function Notice(props: { notice: BoardNotice; ids: readonly string[] }) {
  const { notice } = props;
  const task = board.value?.tasks.find(({ taskId }) => taskId === notice.taskId);
  // Of a proposal the first line says what would happen.
  const [title = "", ...lines] = notice.text.split("\n");
  const words = lines.join("\n").trim();
  const [text, setText] = useState("");
  const dismiss = () => change(() => Promise.all(props.ids.map((id) => api("POST", `notices/${id}/answer`))), "Dismissed.");
  const answer = () => change(() => api("POST", `notices/${notice.id}/answer`, { text: text.trim() }), "Your answer is on its way.");
  return (
    <li class={`notice notice-${notice.kind}`}>
      <p class="notice-head">
        <span class={`state tone-${noticeTones[notice.kind]}`}>
          <ShapeIcon shape={noticeShapes[notice.kind]} />
          {noticeWords[notice.kind]}
        </span>
        <span class="muted">
          <Ago atMs={notice.atMs} />
          {props.ids.length > 1 ? `, ${props.ids.length} times` : ""}
        </span>
        {task ? (
          <a href={`#/task/${task.taskId}`} dir="auto">
            {task.title}
          </a>
        ) : notice.taskId ? (
          <Id id={notice.taskId} />
        ) : notice.threadId ? (
          <Id id={notice.threadId} />
        ) : null}
      </p>
      {notice.kind === "offer" ? (
        <>
          <p dir="auto">
            <strong>{title}</strong>
          </p>
          {words === "" ? null : <ScrollText class="notice-text proposal-text" text={words} />}
        </>
      ) : (
        <ScrollText class="notice-text" text={notice.text} />
      )}
      <form
        class="notice-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") void answer();
        }}
      >
        {notice.kind === "question" ? (
          <>
            <input
              class="field"
              dir="auto"
              aria-label="Your answer"
              placeholder="Answer …"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
            <button type="submit" class="btn btn-main">
              Answer
            </button>
          </>
        ) : null}
        {notice.kind === "offer" && !isWhole(notice) ? <a href="#/proposals">Read all of it and decide</a> : null}
        {notice.kind === "offer" && isWhole(notice) ? <Release id={notice.id} what={title} /> : null}
        {notice.kind === "offer" ? null : (
          <button type="button" class="btn btn-bare" onClick={() => void dismiss()}>
            Dismiss
          </button>
        )}
      </form>
    </li>
  );
}

function WaitingForYou(props: { board: BoardState }) {
  const waiting = waitingOf(props.board);
  return (
    <Panel
      title="Waiting for you"
      count={waiting.length}
      class={waiting.length > 0 ? "panel-asks" : ""}
      aside={<a href="#/proposals">All proposals</a>}
    >
      {waiting.length === 0 ? (
        <Empty>Nothing waits for you.</Empty>
      ) : (
        <ul class="list">
          {waiting.map((item) =>
            item.kind === "notice" ? (
              <Notice key={item.notice.id} notice={item.notice} ids={item.ids} />
            ) : (
              <TaskRow key={item.task.taskId} task={item.task} />
            ),
          )}
        </ul>
      )}
    </Panel>
  );
}

export const MachineLine = (props: { endpoint: BoardEndpoint }) => {
  const { endpoint } = props;
  const work = [
    endpoint.running > 0 ? `${endpoint.running} running` : "",
    endpoint.waiting > 0 ? `${endpoint.waiting} waiting` : "",
  ].filter(Boolean);
  return (
    <span class="machine-line">
      <span class={endpoint.online ? "dot dot-on" : "dot"} aria-hidden="true" />
      <span class="machine-name">{endpoint.name}</span>
      <span class="muted">
        {endpoint.online ? "online" : "offline, last seen "}
        {endpoint.online ? null : <Ago atMs={endpoint.sinceMs} />}
        {work.length > 0 ? ` · ${work.join(", ")}` : ""}
      </span>
    </span>
  );
};

const Machines = (props: { endpoints: readonly BoardEndpoint[] }) => (
  <Panel title="Machines" aside={<a href="#/machines">{props.endpoints.length === 0 ? "Connect one" : "All"}</a>}>
    {props.endpoints.length === 0 ? (
      <Empty>
        No machine is connected yet: work that needs one waits. <a href="#/machines">Connect a machine</a> in three lines.
      </Empty>
    ) : (
      <ul class="list plain">
        {props.endpoints.map((endpoint) => (
          <li key={endpoint.endpointId}>
            <MachineLine endpoint={endpoint} />
          </li>
        ))}
      </ul>
    )}
  </Panel>
);

const DecisionRow = (props: { decision: BoardDecision }) => {
  const { decision } = props;
  return (
    <li class="decision">
      <a class="row-link decision-link" href={`#/decision/${decision.decisionId}`} data-row>
        <span class="decision-tool">{asTitle(decisionWords(decision))}</span>
        <span class="decision-reason" dir="auto">
          {decision.reason}
        </span>
      </a>
      <span class="decision-facts muted">
        <Ago atMs={decision.atMs} />
        <span>
          {decision.unasked ? "nobody had asked, " : ""}
          {decision.lane} lane{decision.by === "code" ? ", by a fixed rule" : ""}, <span class="mono">{decision.tool}</span>
        </span>
        {decision.settles.slice(0, 2).map((id) => (
          <Id key={id} id={id} />
        ))}
        {decision.taskId ? <Id id={decision.taskId} /> : null}
      </span>
    </li>
  );
};

const Decisions = (props: { decisions: readonly BoardDecision[] }) => (
  <Panel title="Latest decisions" aside={<a href="#/decisions">All</a>}>
    {props.decisions.length === 0 ? (
      <Empty>The router has decided nothing yet. Each decision stands here with its reason.</Empty>
    ) : (
      <ul class="list">
        {props.decisions.slice(0, 6).map((decision) => (
          <DecisionRow key={decision.decisionId} decision={decision} />
        ))}
      </ul>
    )}
  </Panel>
);

function TaskList(props: { tasks: readonly BoardTask[]; empty: string }) {
  if (props.tasks.length === 0)
    return (
      <Empty>
        <p>{props.empty}</p>
        <CopyLine text={`${location.origin}/demo`} label="address of the demo page" />
      </Empty>
    );
  return (
    <ul class="list">
      {sortTasks(props.tasks).map((task) => (
        <TaskRow key={task.taskId} task={task} />
      ))}
    </ul>
  );
}

export function NowPage(props: { board: BoardState }) {
  const { board } = props;
  const open = board.tasks.filter((task) => statusView(task).open).length;
  // What waits for somebody stands above, and once is enough.
  const rest = board.tasks.filter((task) => !statusView(task).forYou);
  return (
    <div class="now">
      <div class="now-main">
        <WaitingForYou board={board} />
        <Panel title="Tasks" aside={<span class="muted">{open} open</span>}>
          <TaskList tasks={rest} empty="No other task yet. Ask for work on a page that has the widget, for example here, as a member:" />
        </Panel>
      </div>
      <div class="now-side">
        <Machines endpoints={board.endpoints} />
        <TodayPanel board={board} />
        <MonthPanel />
        <Decisions decisions={board.decisions} />
        <SetUp />
      </div>
    </div>
  );
}

export function TasksPage(props: { board: BoardState }) {
  const stored = useAnswer<TasksAnswer>("tasks?limit=200");
  return (
    <Panel title="Tasks">
      <Answer of={stored}>
        {(answer) => (
          <TaskList tasks={mergeTasks(props.board.tasks, answer.tasks)} empty="No task yet. Ask for work on a page that has the widget:" />
        )}
      </Answer>
    </Panel>
  );
}

export const DecisionsPage = (props: { board: BoardState }) => (
  <Panel title="Decisions of the router">
    {props.board.decisions.length === 0 ? (
      <Empty>The router has decided nothing yet. Each decision stands here with its reason.</Empty>
    ) : (
      <ul class="list">
        {props.board.decisions.map((decision) => (
          <DecisionRow key={decision.decisionId} decision={decision} />
        ))}
      </ul>
    )}
  </Panel>
);
