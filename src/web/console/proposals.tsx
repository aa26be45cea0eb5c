// What waits for a release, over all threads: also what the first screen has no room for, each with all of its words.
import { useSignal } from "@preact/signals";
import type { HeldOffersAnswer } from "../../protocol/console.ts";
import type { OfferView } from "../../protocol/offer.ts";
import { nowMs } from "../shared/clock.ts";
import { exact } from "../shared/time.ts";
import { Ago, Answer, Empty, Id, Panel, ScrollText, useAnswer } from "./parts.tsx";
import { api, board, change } from "./store.ts";

type Word = { id: string; what: string; done?: (() => void) | undefined };

function WordButton(props: Word & { verdict: "release" | "decline" }) {
  const { id, what, done, verdict } = props;
  const [word, said] =
    verdict === "release" ? (["Release", "Released: it is on its way."] as const) : (["Decline", "Declined: it is not sent."] as const);
  const decide = () =>
    change(async () => {
      await api("POST", `offers/${id}`, { verdict });
      done?.();
    }, said);
  return (
    <button
      type="button"
      class={verdict === "release" ? "btn btn-main" : "btn"}
      aria-label={`${word}: ${what}`}
      onClick={() => void decide()}
    >
      {word}
    </button>
  );
}

/** The two words on a proposal, beside all of its text; `what` says in a line what would happen. */
export const Release = (props: Word) => (
  <>
    <WordButton verdict="release" {...props} />
    <WordButton verdict="decline" {...props} />
  </>
);

/** [O12] Only here, where all that would be sent is in sight, it can be released. */
export function Words(props: Word & { asked?: boolean }) {
  const answer = useAnswer<OfferView>(`offers/${props.id}`);
  return (
    <Answer of={answer}>
      {({ offer: { outbound, changes }, state }) => (
        <>
          <ScrollText
            class="notice-text proposal-text"
            text={outbound.text === "" ? "No words: the line above says all of it." : outbound.text}
            // The button that was pressed is gone.
            focus={props.asked === true}
          />
          {changes === undefined ? null : (
            <section aria-label="What it changes">
              <ScrollText class="notice-text proposal-text mono" text={changes} />
            </section>
          )}
          <div class="notice-form">{state === "held" ? <Release {...props} /> : <span class="muted">It was {state} meanwhile.</span>}</div>
        </>
      )}
    </Answer>
  );
}

function Proposal(props: { offer: HeldOffersAnswer["offers"][number]; only: boolean; gone: () => void }) {
  const { id, taskId, title, atMs, untilMs } = props.offer;
  const asked = useSignal(false);
  const word = { id, what: title, done: props.gone };
  const task = board.value?.tasks.find((each) => each.taskId === taskId);
  return (
    <li class="notice notice-offer">
      <p class="notice-head">
        <span class="muted">
          <Ago atMs={atMs} />
        </span>
        {task ? (
          <a href={`#/task/${taskId}`} dir="auto">
            {task.title}
          </a>
        ) : (
          <Id id={taskId} />
        )}
        <span class="muted" title={exact(untilMs)}>
          {untilMs <= nowMs.value ? "its time is over" : `waits until ${exact(untilMs)}`}
        </span>
      </p>
      <p dir="auto">
        <strong>{title}</strong>
      </p>
      {props.only || asked.value ? (
        <Words {...word} asked={asked.value} />
      ) : (
        <div class="notice-form">
          <button
            type="button"
            class="btn btn-main"
            aria-label={`Read what would be sent: ${title}`}
            onClick={() => {
              asked.value = true;
            }}
          >
            Read what would be sent
          </button>
          <WordButton verdict="decline" {...word} />
        </div>
      )}
    </li>
  );
}

export function ProposalsPage() {
  const reads = useSignal(0);
  const decided = useSignal<readonly string[]>([]);
  // The board's own notices come and go with the proposals: then the list is read again.
  const waiting = board.value?.notices.flatMap(({ kind, id }) => (kind === "offer" ? [id] : [])).join(" ");
  const answer = useAnswer<HeldOffersAnswer>("offers", `${reads.value} ${waiting}`);
  return (
    <Panel title="Proposals">
      <p class="panel-note">
        What tasks would like to send outside and nobody has released yet, over all threads; what runs out first comes first. What leaves by
        itself is set on the <a href="#/rules">Rules</a> page.
      </p>
      <Answer of={answer}>
        {({ offers, total }) => {
          const shown = offers.filter(({ id }) => !decided.value.includes(id));
          const gone = (id: string) => {
            decided.value = [...decided.value, id];
            reads.value++;
          };
          return shown.length === 0 ? (
            <Empty>Nothing waits for a release.</Empty>
          ) : (
            <>
              <ul class="list">
                {shown.map((offer) => (
                  <Proposal key={offer.id} offer={offer} only={offers.length === 1} gone={() => gone(offer.id)} />
                ))}
              </ul>
              {total > offers.length ? <p class="panel-note">And {total - offers.length} more, shown when these are decided.</p> : null}
            </>
          );
        }}
      </Answer>
    </Panel>
  );
}
