// The team's memory: what people asked to remember, found by words, and forgotten at their word.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { FactAnswer, FactLine, MemoryAnswer } from "../../protocol/console.ts";
import { Ago, Answer, Empty, FindField, type Loaded, Panel, useAnswer, useTyped } from "./parts.tsx";
import { api, change, question } from "./store.ts";

const namedChars = 60;

/** What a fact is called where there is no room for all of it. */
const nameOf = ({ text, kind, by }: FactLine): string =>
  text === null ? `a ${kind} of ${by.name}` : `“${text.length > namedChars ? `${text.slice(0, namedChars).trimEnd()}…` : text}”`;

const forgets = (fact: FactLine, done: () => void) => {
  question.value = {
    title: `Forget ${nameOf(fact)}?`,
    text: "It counts no more and is found no more, for all who knew it, and its words are not kept. What was said in conversations stays there. To have it back, somebody has to tell it again.",
    yes: "Forget it",
    run: () => change(() => api("POST", `memory/${fact.id}/forget`), `Forgotten: ${nameOf(fact)}`).then(done),
  };
};

const reachWords = ({ reach, place, by }: FactLine): string =>
  reach === "team" ? "for the whole team" : reach === "place" ? `for whoever reads ${place}` : `in ${by.name}’s own conversation`;

function Words(props: { fact: FactLine }) {
  const { fact } = props;
  if (fact.forgotten)
    return (
      <span class="muted">
        Forgotten by {fact.forgotten.by} <Ago atMs={fact.forgotten.atMs} />
      </span>
    );
  return fact.text === null ? <span class="muted">Only {fact.by.name} reads its words.</span> : <span dir="auto">{fact.text}</span>;
}

function FactRow(props: { fact: FactLine; done: () => void }) {
  const { fact } = props;
  return (
    <li class="rule-row">
      <span class="rule-outcome">{fact.kind}</span>
      <span class="rule-text">
        <Words fact={fact} />
        <span class="muted fine-print" dir="auto">
          {fact.by.name} ({fact.by.role}), <Ago atMs={fact.atMs} /> · {reachWords(fact)}
          {fact.used === null ? null : (
            <>
              {` · used ${fact.used.times === 1 ? "once" : `${fact.used.times} times`}, last `}
              <Ago atMs={fact.used.lastMs} />
            </>
          )}
          {fact.replacedBy === undefined ? null : (
            <>
              {" · "}
              <a href={`#/fact/${fact.replacedBy}`}>something newer</a> took its place
            </>
          )}
          {fact.told === null ? null : (
            <>
              {" · "}
              <a href={`#/thread/${fact.told.threadId}`}>where it was told</a>
            </>
          )}
        </span>
      </span>
      {fact.forgotten || fact.replacedBy !== undefined ? null : (
        <button
          type="button"
          class="btn btn-bare"
          data-forget
          aria-label={`Forget ${nameOf(fact)}`}
          onClick={() => forgets(fact, props.done)}
        >
          Forget
        </button>
      )}
    </li>
  );
}

/** What is remembered; the last answer stays in sight while the next one is on its way. */
function useMemory(words: string, version: number): Loaded<MemoryAnswer> {
  const last = useSignal<Loaded<MemoryAnswer>>({ kind: "loading" });
  const answer = useAnswer<MemoryAnswer>(`memory?q=${encodeURIComponent(useTyped(words))}`, version);
  useEffect(() => {
    if (answer.kind !== "loading") last.value = answer;
  }, [answer]);
  return last.value;
}

export function MemoryPage() {
  const words = useSignal("");
  const reads = useSignal(0);
  const answer = useMemory(words.value.trim(), reads.value);
  const panel = useRef<HTMLDivElement>(null);
  /** The row that was forgotten: the focus goes on to what stands in its place. */
  const gone = useRef<number | null>(null);
  useEffect(() => {
    if (gone.current === null) return;
    const buttons = panel.current?.querySelectorAll<HTMLElement>("[data-forget]") ?? [];
    (buttons[Math.min(gone.current, buttons.length - 1)] ?? document.getElementById("find-fact"))?.focus();
    gone.current = null;
  }, [answer]);
  return (
    <div class="stack" ref={panel}>
      <Panel title="Memory" count={answer.kind === "here" ? answer.value.total : undefined}>
        <p class="panel-note">
          What people of the team asked to remember: it comes to mind where it matters. Say “remember that …”, “forget that …” or “what do
          you remember?” in the chat. What somebody told in a conversation of their own is read there alone.
        </p>
        <p class="fact-find">
          <FindField id="find-fact" label="Find a fact" words={words} />
        </p>
        <Answer of={answer}>
          {({ facts, total }) =>
            facts.length === 0 ? (
              <Empty>
                {words.value.trim() === "" ? "Nothing is remembered yet." : `No fact that you may read holds “${words.value.trim()}”.`}
              </Empty>
            ) : (
              <>
                <ul class="list" aria-label="Facts">
                  {facts.map((fact, at) => (
                    <FactRow
                      key={fact.id}
                      fact={fact}
                      done={() => {
                        gone.current = at;
                        reads.value++;
                      }}
                    />
                  ))}
                </ul>
                {total === facts.length ? null : (
                  <p class="panel-note muted">And {total - facts.length} more: a word that they hold finds them.</p>
                )}
              </>
            )
          }
        </Answer>
      </Panel>
    </div>
  );
}

/** One fact, also of those that count no more. */
export function FactPage(props: { id: string }) {
  const reads = useSignal(0);
  const answer = useAnswer<FactAnswer>(`memory/${props.id}`, reads.value);
  return (
    <Panel title="A fact" aside={<a href="#/memory">All that is remembered</a>}>
      <Answer of={answer}>
        {({ fact }) => (
          <ul class="list">
            <FactRow fact={fact} done={() => reads.value++} />
          </ul>
        )}
      </Answer>
    </Panel>
  );
}
