// What waits for a release, over all threads: also what the first screen has no room for, each with all of its words.
import { useSignal } from "@preact/signals";
import type { HeldOffersAnswer } from "../../protocol/console.ts";
import type { OfferView } from "../../protocol/offer.ts";
import { nowMs } from "../shared/clock.ts";
import { exact } from "../shared/time.ts";
import { Ago, Answer, Empty, Id, Panel, useAnswer } from "./parts.tsx";
import { api, board, change } from "./store.ts";

/** The two words on a proposal; `what` says in a line what would happen. */
export function Release(props: { id: string; what: string; done?: () => void }) {
  const { id, what, done } = props;
  const decide = (verdict: "release" | "decline") =>
    change(
      async () => {
        await api("POST", `offers/${id}`, { verdict });
        done?.();
      },
      verdict === "release" ? "Released: it is on its way." : "Declined: it is not sent.",
    );
  return (
    <>
      <button type="button" class="btn btn-main" aria-label={`Release: ${what}`} onClick={() => void decide("release")}>
        Release
      </button>
      <button type="button" class="btn" aria-label={`Decline: ${what}`} onClick={() => void decide("decline")}>
        Decline
      </button>
    </>
  );
}

function Words(props: { id: string }) {
  const answer = useAnswer<OfferView>(`offers/${props.id}`);
  return (
    <Answer of={answer}>
      {({ offer: { outbound }, state }) => (
        <p class="notice-text" dir="auto">
          {state === "held" ? "" : `(${state} meanwhile)\n\n`}
          {outbound.text === "" ? "No words: the line above says all of it." : outbound.text}
        </p>
      )}
    </Answer>
  );
}

function Proposal(props: { offer: HeldOffersAnswer["offers"][number]; gone: () => void }) {
  const { id, taskId, title, atMs, untilMs } = props.offer;
  const open = useSignal(false);
  return (
    <li class="notice notice-offer">
      <p class="notice-head">
        <span class="muted">
          <Ago atMs={atMs} />
        </span>
        <Id id={taskId} />
        <span class="muted" title={exact(untilMs)}>
          {untilMs <= nowMs.value ? "its time is over" : `waits until ${exact(untilMs)}`}
        </span>
      </p>
      <p class="notice-text" dir="auto">
        {title}
      </p>
      <details onToggle={(event) => (open.value = event.currentTarget.open)}>
        <summary>What would be sent</summary>
        {open.value ? <Words id={id} /> : null}
      </details>
      <div class="notice-form">
        <Release id={id} what={title} done={props.gone} />
      </div>
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
                  <Proposal key={offer.id} offer={offer} gone={() => gone(offer.id)} />
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
