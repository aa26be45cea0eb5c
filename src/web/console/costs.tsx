// What models cost: by day, by role and model, by task, and what is not in these figures.
import type { ComponentChildren } from "preact";
import type { BoardState } from "../../protocol/board.ts";
import type { CostsAnswer } from "../../protocol/costs.ts";
import { nowMs } from "../shared/clock.ts";
import { dayName, exact } from "../shared/time.ts";
import { type Amount, allOf, amountWords, byDay, byRole, byTask, detailWords, notCounted } from "./costs-model.ts";
import { Answer, CopyLine, Empty, Panel, useAnswer, usePaced } from "./parts.tsx";

const pauseMs = 30_000;
const shownTasks = 50;

/** By how much clocks are ahead of UTC here. */
export const offsetMinutes = (): number => -new Date().getTimezoneOffset();

function Row(props: { name: ComponentChildren; detail: string; amount: Amount; share: number; href?: string }) {
  const { name, detail, amount, share, href } = props;
  const inside = (
    <>
      <span class="cost-text">
        <span dir="auto">{name}</span>
        <span class="muted fine-print">{detail}</span>
      </span>
      <span class="cost-amount">{amountWords(amount)}</span>
      <span class="cost-bar" style={{ inlineSize: `calc(${share} * (100% - 32px))` }} aria-hidden="true" />
    </>
  );
  return (
    <li>
      {href === undefined ? (
        <div class="cost-row">{inside}</div>
      ) : (
        <a class="row-link cost-row" href={href} data-row>
          {inside}
        </a>
      )}
    </li>
  );
}

function Figures(props: { costs: CostsAnswer }) {
  const { costs } = props;
  const { router, tasks, roles, days, today } = costs;
  const since = (day: number) =>
    allOf({ router: router.filter((each) => each.day >= day), tasks: tasks.filter((each) => each.day >= day) }, roles);
  const figures: [string, Amount][] = [
    ["today", since(today)],
    ["last 7 days", since(today - 6)],
    [`last ${days} days`, since(today - days + 1)],
  ];
  return (
    <dl class="facts facts-even">
      {figures.map(([name, amount]) => (
        <div key={name}>
          <dt class="muted">{name}</dt>
          <dd title={detailWords(amount)}>{amountWords(amount)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Shown(props: { costs: CostsAnswer }) {
  const { costs } = props;
  const { roles, cut, fromMs } = costs;
  const offsetMs = offsetMinutes() * 60_000;
  const days = byDay(costs, offsetMs);
  const tasks = byTask(costs, shownTasks);
  const priced = roles.router.price !== null || roles.worker.price !== null;
  return (
    <div class="stack">
      <Panel title="Costs of models">
        <Figures costs={costs} />
        {cut ? <p class="panel-note tone-wait">Counted since {exact(fromMs)}: what is older is too much to read at once.</p> : null}
        {priced ? null : (
          <div class="panel-note muted">
            <p>No price is set, so these are tokens. To see dollars, set what a million tokens cost, read/written:</p>
            <CopyLine text="MODEL_PRICE=3/15" label="setting of the price" />
          </div>
        )}
      </Panel>
      <Panel title="By day">
        {days.length === 0 ? (
          <Empty>Nothing was spent yet. Each day with a call of a model stands here.</Empty>
        ) : (
          <ul class="list">
            {days.map(({ day, atMs, router, worker, amount, share }) => (
              <Row
                key={day}
                name={dayName(atMs, nowMs.value)}
                detail={`router ${amountWords(router)} · workers ${amountWords(worker)} · ${amount.calls} calls`}
                amount={amount}
                share={share}
              />
            ))}
          </ul>
        )}
      </Panel>
      {days.length === 0 ? null : (
        <Panel title="By role and model">
          <ul class="list">
            {byRole(costs).map(({ key, name, amount, share }) => (
              <Row key={key} name={name} detail={detailWords(amount)} amount={amount} share={share} />
            ))}
          </ul>
        </Panel>
      )}
      {tasks.length === 0 ? null : (
        <Panel title="By task">
          <ul class="list">
            {tasks.map(({ taskId, title, amount, share }) => (
              <Row key={taskId} name={title} detail={detailWords(amount)} amount={amount} share={share} href={`#/task/${taskId}`} />
            ))}
          </ul>
        </Panel>
      )}
      <Panel title="What is not counted">
        <ul class="plain-list">
          {notCounted(costs).map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      </Panel>
    </div>
  );
}

export function CostsPage(props: { board: BoardState }) {
  const answer = useAnswer<CostsAnswer>(`costs?offset=${offsetMinutes()}`, usePaced(props.board, pauseMs));
  return <Answer of={answer}>{(costs) => <Shown costs={costs} />}</Answer>;
}
