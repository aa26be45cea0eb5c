// The day and the month in figures: how many tasks, how often the router acted, and what it cost.
import { useMemo } from "preact/hooks";
import type { BoardState } from "../../protocol/board.ts";
import type { MetricsAnswer } from "../../protocol/console.ts";
import type { TodayAnswer } from "../../protocol/costs.ts";
import { nowMs } from "../shared/clock.ts";
import { dayKey } from "../shared/time.ts";
import { offsetMinutes } from "./costs.tsx";
import { allOf, countWords, detailWords, moneyWords, tokensOf } from "./costs-model.ts";
import { Answer, Panel, useAnswer, usePaced } from "./parts.tsx";

const pauseMs = 20_000;

type Fact = { name: string; value: preact.ComponentChildren; tone?: string; hint?: string };

const Facts = (props: { facts: readonly Fact[] }) => (
  <dl class="facts facts-even">
    {props.facts.map(({ name, value, tone, hint }) => (
      <div key={name}>
        <dt class="muted">{name}</dt>
        <dd class={tone} title={hint}>
          {value}
        </dd>
      </div>
    ))}
  </dl>
);

const barWidth = 5;
const barsHeight = 18;

/** Tasks of the last days as bars, today's last. Whoever does not see them hears the numbers. */
function Bars(props: { days: readonly number[] }) {
  const { days } = props;
  const most = Math.max(...days, 1);
  return (
    <svg
      class="bars"
      role="img"
      aria-label={`The last ${days.length} days: ${days.join(", ")}.`}
      width={days.length * barWidth}
      height={barsHeight}
      viewBox={`0 0 ${days.length * barWidth} ${barsHeight}`}
    >
      {days.map((count, at) => {
        const height = Math.max(1, Math.round((count / most) * barsHeight));
        return <rect key={at} x={at * barWidth} y={barsHeight - height} width={barWidth - 1} height={height} />;
      })}
    </svg>
  );
}

function cost({ spent, roles }: TodayAnswer): Fact {
  const amount = allOf(spent, roles);
  const least = spent.cut ? "at least, " : "";
  return amount.dollars === null
    ? { name: `${least}tokens`, value: countWords(tokensOf(amount)), hint: detailWords(amount) }
    : { name: `${least}for models`, value: moneyWords(amount.dollars), hint: detailWords(amount) };
}

/** What was asked for today, what came of it, what the router did by itself, and what it cost. */
export function TodayPanel(props: { board: BoardState }) {
  const day = dayKey(nowMs.value);
  const version = useMemo(() => ({}), [props.board, day]);
  const answer = useAnswer<TodayAnswer>(`costs/today?offset=${offsetMinutes()}`, usePaced(version, pauseMs));
  return (
    <Panel title="Today" aside={<a href="#/costs">Costs</a>}>
      <Answer of={answer}>
        {(today) => {
          const { tasks, failed } = today.days.at(-1) ?? { tasks: 0, failed: 0 };
          return (
            <Facts
              facts={[
                {
                  name: tasks === 1 ? "task" : "tasks",
                  value: (
                    <>
                      {tasks} <Bars days={today.days.map((each) => each.tasks)} />
                    </>
                  ),
                },
                { name: "failed", value: failed, ...(failed > 0 ? { tone: "tone-bad" } : {}) },
                cost(today),
                { name: "acted when asked", value: today.asked },
                { name: "acted unasked", value: today.unasked },
                { name: "called wrong", value: today.wrong, ...(today.wrong > 0 ? { tone: "tone-bad" } : {}) },
              ]}
            />
          );
        }}
      </Answer>
    </Panel>
  );
}

const share = (part: number, of: number): string => `${of === 0 ? 0 : Math.round((part / of) * 1000) / 10} %`;

/** What the router did by itself, how often that was wrong, and what people made of the outcomes. */
export function MonthPanel() {
  const answer = useAnswer<MetricsAnswer>("metrics");
  if (answer.kind !== "here") return null;
  const { days, asked, unasked, wrongUnasked, accepted, rejected, context } = answer.value;
  return (
    <Panel title={`Last ${days} days`}>
      <Facts
        facts={[
          { name: "acted when asked", value: asked },
          { name: "acted unasked", value: unasked },
          {
            name: "of these wrong",
            value: `${wrongUnasked} (${share(wrongUnasked, unasked)})`,
            ...(wrongUnasked > 0 ? { tone: "tone-bad" } : {}),
          },
          { name: "outcomes accepted", value: `${accepted} of ${accepted + rejected}` },
          { name: "turns without a look-up", value: share(context.withoutRead, context.turns) },
        ]}
      />
    </Panel>
  );
}
