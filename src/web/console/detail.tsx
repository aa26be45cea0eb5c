// Pages of one thing: a task with its timeline, a thread, a decision, and why a trigger was (not) answered.
import { useSignal } from "@preact/signals";
import type { BoardState } from "../../protocol/board.ts";
import type { DecisionAnswer, TaskAnswer, ThreadAnswer, TimelineEntry, WhyAnswer } from "../../protocol/console.ts";
import type { TaskCard } from "../../protocol/task.ts";
import type { ThreadRow } from "../../protocol/thread.ts";
import { nowMs } from "../shared/clock.ts";
import { StateMark } from "../shared/icons.tsx";
import { FoldedMarkdown } from "../shared/markdown.tsx";
import { actionsOf, statusView } from "../shared/status.ts";
import { elapsed, exact } from "../shared/time.ts";
import { amountWords, detailWords } from "./costs-model.ts";
import { MarkDecision } from "./mark.tsx";
import { placeOf } from "./model.ts";
import { Ago, Answer, askStop, Empty, Id, Panel, ScrollText, useAnswer, usePaced } from "./parts.tsx";
import { Words } from "./proposals.tsx";
import { outcomeWords } from "./rules-model.ts";
import { SayToTask } from "./say-to-task.tsx";
import { api, change, question } from "./store.ts";
import { Timeline } from "./timeline.tsx";
import { decisionWords, toolWords } from "./tool-words.ts";

/** A thread is read anew as the board moves, not for each of its moves. */
const threadPauseMs = 1_000;

const Fact = (props: { name: string; children: preact.ComponentChildren }) => (
  <div>
    <dt class="muted">{props.name}</dt>
    <dd>{props.children}</dd>
  </div>
);

/** What an operator may do with a task as it stands. */
function TaskButtons(props: { task: TaskCard; child: boolean; onDone: () => void }) {
  const { task, child, onDone } = props;
  const act = (what: "again" | "continue", said: string) =>
    void change(() => api("POST", `tasks/${task.taskId}/${what}`), said).then(onDone);
  const able = actionsOf(task);
  return (
    <span class="row-buttons">
      {able.includes("continue") ? (
        <button type="button" class="btn btn-main" onClick={() => act("continue", "It goes on.")}>
          Continue
        </button>
      ) : null}
      {able.includes("again") && !child ? (
        <button type="button" class="btn" onClick={() => act("again", "Asked again: the router opens it in its next turn.")}>
          Try again
        </button>
      ) : null}
      {able.includes("stop") ? (
        <button type="button" class="btn" onClick={() => askStop(task)}>
          Stop
        </button>
      ) : null}
    </span>
  );
}

export function TaskPage(props: { id: string; board: BoardState }) {
  const live = props.board.tasks.find((task) => task.taskId === props.id);
  const changes = useSignal(0);
  const answer = useAnswer<TaskAnswer>(`tasks/${props.id}`, `${live?.revision} ${changes.value}`);
  return (
    <Answer of={answer}>
      {({ card, start, tainted, timeline, reports, cut, backlog, children, profile, allowance, spent, dollars }) => {
        const now = live && live.revision > card.revision ? live : card;
        // Where it was asked: the topic's first row is only its copy.
        const decision = timeline.find(({ event }) => event.kind === "router.decision" && event.decisionId === start.decisionId)?.event;
        const asked = decision?.kind === "router.decision" ? decision.settles.find((id) => id.startsWith("trg_")) : undefined;
        const result = reports.findLast((report) => report.kind === "done" || report.kind === "failed");
        return (
          <div class="stack">
            <Panel title={now.title} aside={<TaskButtons task={now} child={start.parent !== undefined} onDone={() => changes.value++} />}>
              <dl class="facts-wide">
                <Fact name="State">
                  <StateMark view={statusView(now)} /> <span class="elapsed">{elapsed(now, nowMs.value)}</span>
                </Fact>
                <Fact name="Asked by">
                  {start.quote.from.name} ({start.quote.from.role}), <Ago atMs={start.atMs} />
                </Fact>
                <Fact name="Where">
                  {placeOf(start)} · <Id id={start.threadId} />
                </Fact>
                <Fact name="Machine">{start.endpoint?.name ?? "none"}</Fact>
                <Fact name="Authority">
                  {start.authority}
                  {tainted ? ", tainted by public text: it runs no commands" : ""}
                </Fact>
                <Fact name="Model calls">
                  {now.modelCalls} of {allowance}
                </Fact>
                <Fact name={children.length === 0 ? "Spent" : "Spent, with its children"}>
                  {amountWords({ ...spent, untold: 0, dollars })} <span class="muted">({detailWords({ ...spent, untold: 0 })})</span>
                </Fact>
                <Fact name="Profile">{profile}</Fact>
                {start.parent ? (
                  <Fact name="Child of">
                    <Id id={start.parent.taskId} />
                  </Fact>
                ) : null}
                {children.length === 0 ? null : (
                  <Fact name="Children">
                    {children.map((child) => (
                      <span key={child.taskId}>
                        <a href={`#/task/${child.taskId}`}>{child.title}</a> ({child.profile}, {child.share} model calls
                        {child.open ? ", at work" : ""}){" "}
                      </span>
                    ))}
                  </Fact>
                )}
                <Fact name="Decision">
                  <Id id={start.decisionId} /> · <a href={`#/trigger/${asked ?? start.quote.triggerId}`}>why?</a>
                </Fact>
                {now.accepted === undefined ? null : <Fact name="Verdict">{now.accepted ? "accepted" : "rejected"}</Fact>}
              </dl>
              {result === undefined || statusView(now).open ? null : (
                <p class="row-buttons">
                  {([true, false] as const).map((accepted) => (
                    <button
                      key={String(accepted)}
                      type="button"
                      class="btn"
                      aria-pressed={now.accepted === accepted}
                      onClick={() => {
                        const said = accepted ? "Accepted." : "Rejected.";
                        void change(() => api("POST", `tasks/${now.taskId}/verdict`, { accepted }), said).then(() => changes.value++);
                      }}
                    >
                      {accepted ? "Accept the outcome" : "Reject the outcome"}
                    </button>
                  ))}
                </p>
              )}
              <blockquote class="asked-by">
                <ScrollText class="asked" text={start.quote.text} />
              </blockquote>
              {result ? (
                <div class="result">
                  <FoldedMarkdown text={result.text} />
                </div>
              ) : null}
            </Panel>
            {now.offers === undefined ? null : (
              <Panel title="Waits for your release" count={now.offers.length} class="panel-asks">
                <ul class="list">
                  {now.offers.map(({ id, title }) => (
                    <li class="notice" key={id}>
                      <p dir="auto">
                        <strong>{title}</strong>
                      </p>
                      <Words id={id} what={title} done={() => changes.value++} />
                    </li>
                  ))}
                </ul>
              </Panel>
            )}
            <SayToTask
              taskId={now.taskId}
              open={statusView(now).open}
              backlog={backlog}
              backlogRevision={card.backlogRevision ?? 0}
              onChanged={() => changes.value++}
            />
            <Panel title="Timeline" aside={cut ? <span class="tone-wait">cut: not all events are shown</span> : null}>
              <Timeline entries={timeline} startMs={timeline[0]?.atMs ?? start.atMs} />
            </Panel>
          </div>
        );
      }}
    </Answer>
  );
}

function ThreadLine(props: { row: ThreadRow }) {
  const { row } = props;
  switch (row.kind) {
    case "trigger":
      return (
        <li class="said">
          <p class="said-head muted">
            <strong dir="auto">{row.trigger.principal.name}</strong> ({row.trigger.principal.role}) · {row.trigger.kind} ·{" "}
            <Ago atMs={row.atMs} />
            {" · gate: "}
            {outcomeWords[row.verdict.outcome]} ({row.verdict.rule}) · <a href={`#/trigger/${row.trigger.id}`}>why?</a>
          </p>
          <p class="said-text" dir="auto">
            {row.trigger.text}
          </p>
        </li>
      );
    case "outbound":
      return (
        <li class="said said-ours">
          <p class="said-head muted">
            <strong>Switchyard</strong> · {row.outbound.kind} · <Ago atMs={row.atMs} /> · {row.state}
            {row.detail ? ` (${row.detail})` : ""}
            {row.outbound.decisionId ? (
              <>
                {" · "}
                <Id id={row.outbound.decisionId} />
              </>
            ) : null}
          </p>
          <FoldedMarkdown text={row.outbound.text} />
        </li>
      );
    case "topic":
      return (
        <li class="said">
          <p class="said-head muted">
            Became the task <a href={`#/task/${row.taskId}`}>{row.title}</a>, in a topic of its own <Id id={row.topicThreadId} />
          </p>
        </li>
      );
  }
}

export function ThreadPage(props: { id: string; board: BoardState }) {
  const answer = useAnswer<ThreadAnswer>(`threads/${props.id}`, usePaced(props.board, threadPauseMs));
  return (
    <Answer of={answer}>
      {({ info, rows }) => (
        <Panel title={info.title || info.threadKey} aside={<span class="muted">{placeOf(info)}</span>}>
          <p class="panel-note muted">
            {info.subscribers.length === 0 ? "Nobody is subscribed: the router decides about new messages." : "Passes through to "}
            {info.subscribers.map((id) => (
              <Id key={id} id={id} />
            ))}
            {info.url ? (
              <>
                {" · "}
                <a href={info.url} target="_blank" rel="noopener noreferrer">
                  open at the source
                </a>
              </>
            ) : null}
          </p>
          {rows.length === 0 ? (
            <Empty>Nothing was said here yet.</Empty>
          ) : (
            <ol class="list said-list">
              {rows.map((row) => (
                <ThreadLine key={row.seq} row={row} />
              ))}
            </ol>
          )}
        </Panel>
      )}
    </Answer>
  );
}

export function DecisionPage(props: { id: string }) {
  const marked = useSignal(0);
  const answer = useAnswer<DecisionAnswer>(`decisions/${props.id}`, marked.value);
  return (
    <Answer of={answer}>
      {({ decision, events, mark }) => (
        <div class="stack">
          <Panel title={`Decision: ${decisionWords(decision)}`} aside={<span class="muted mono">{decision.tool}</span>}>
            <dl class="facts-wide">
              <Fact name="When">
                <Ago atMs={decision.atMs} /> ({exact(decision.atMs)})
              </Fact>
              <Fact name="By">{decision.by === "code" ? "a fixed rule" : `the router's model, turn ${decision.turn}`}</Fact>
              <Fact name="Lane and authority">
                {decision.lane}, {decision.authority}
              </Fact>
              <Fact name="Settles">
                {decision.settles.map((id) => (
                  <Id key={id} id={id} />
                ))}
              </Fact>
              {decision.taskId ? (
                <Fact name="Task">
                  <Id id={decision.taskId} />
                </Fact>
              ) : null}
              {decision.threadId ? (
                <Fact name="Thread">
                  <Id id={decision.threadId} />
                </Fact>
              ) : null}
              {decision.policy ? (
                <Fact name="Policy">
                  <a href="#/rules">{decision.policy.id}</a>, version {decision.policy.version}
                  {decision.policy.why === "" ? "" : `: ${decision.policy.why}`}
                </Fact>
              ) : null}
            </dl>
            <blockquote class="asked-by">
              <ScrollText class="asked" text={decision.reason} />
            </blockquote>
            <MarkDecision answer={{ decision, events, ...(mark ? { mark } : {}) }} onMarked={() => marked.value++} />
          </Panel>
          <Panel title="What followed">
            <Timeline
              startMs={decision.atMs}
              entries={events.map((logged): TimelineEntry => ({ ...logged, lane: "router", object: "router" }))}
            />
          </Panel>
        </div>
      )}
    </Answer>
  );
}

function askAgain(triggerId: string): void {
  question.value = {
    title: "Decide about this again?",
    text: "The router looks at it anew, with the authority of whoever said it. What was said and started before stays; it may answer a second time.",
    yes: "Decide again",
    run: () =>
      change(() => api("POST", `triggers/${triggerId}/reprocess`, { id: crypto.randomUUID() }), "The router looks at it in its next turn."),
  };
}

/** The answer in words: each step that the trigger took, in order. */
export function WhyPage(props: { id: string; board: BoardState }) {
  const answer = useAnswer<WhyAnswer>(`triggers/${props.id}/why`, props.board.decisions[0]?.decisionId);
  return (
    <Answer of={answer}>
      {(why) => (
        <Panel
          title="Why was this (not) answered?"
          aside={
            <button type="button" class="btn" onClick={() => askAgain(why.trigger.id)}>
              Decide again
            </button>
          }
        >
          <blockquote class="asked-by">
            <ScrollText class="asked" text={why.trigger.text || why.trigger.kind} />
          </blockquote>
          <ol class="why">
            <li>
              It came from {why.trigger.principal.name} ({why.trigger.principal.role}) by {why.trigger.source}, {why.trigger.kind},{" "}
              <Ago atMs={why.acceptedMs} />, as row {why.seq} of <Id id={why.threadId} />.
            </li>
            <li>
              The gate said <strong>{outcomeWords[why.verdict.outcome]}</strong> by the rule “{why.verdict.rule}”: {why.verdict.reason}
            </li>
            {why.subscribers.length > 0 ? (
              <li>
                The thread passed it through at once to{" "}
                {why.subscribers.map((id) => (
                  <Id key={id} id={id} />
                ))}
                , without a decision of the router.
              </li>
            ) : null}
            {why.decisions.map((decision) => (
              <li key={decision.decisionId}>
                {decision.by === "code" ? "A fixed rule" : "The router"} decided to <strong>{decisionWords(decision)}</strong>, with the
                authority of {decision.authority}: {decision.reason} (<Id id={decision.decisionId} />
                {decision.taskId ? (
                  <>
                    , <Id id={decision.taskId} />
                  </>
                ) : null}
                )
              </li>
            ))}
            {why.refusals.map((refusal) => (
              <li key={`${refusal.atMs}${refusal.tool}`}>
                Code did not let it {toolWords(refusal.tool)}: {refusal.reason}
              </li>
            ))}
            {why.escalated ? <li>It was put to the operators: {why.escalated.question}</li> : null}
            {why.replies.map((reply) => (
              <li key={reply.outbound.id}>
                Answered <Ago atMs={reply.atMs} /> ({reply.state}): <q dir="auto">{reply.outbound.text.slice(0, 300)}</q>
              </li>
            ))}
            {why.decisions.length + why.subscribers.length + why.replies.length === 0 && why.escalated === null ? (
              <li>
                {why.verdict.outcome === "record" || why.verdict.outcome === "ignore"
                  ? "So nobody was asked for a decision."
                  : "It waits for the router’s next turn."}
              </li>
            ) : null}
          </ol>
        </Panel>
      )}
    </Answer>
  );
}
