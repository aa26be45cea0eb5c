// All threads that heard something, the latest first: where people talk, and where tasks do.
import type { BoardState } from "../../protocol/board.ts";
import type { ThreadsAnswer } from "../../protocol/console.ts";
import { placeOf } from "./model.ts";
import { Ago, Answer, Empty, Panel, useAnswer, usePaced } from "./parts.tsx";

/** The list follows the board, which moves with each step of each task. */
const pauseMs = 3_000;

const wordsOf = ({ source, threadKey, title }: ThreadsAnswer["threads"][number]): string =>
  source !== "web"
    ? threadKey.endsWith(`:${title}`)
      ? ""
      : threadKey
    : threadKey.startsWith("topic:")
      ? "thread of a task"
      : "conversation";

export function ThreadsPage(props: { board: BoardState }) {
  const answer = useAnswer<ThreadsAnswer>("threads", usePaced(props.board, pauseMs));
  return (
    <Panel title="Threads">
      <Answer of={answer}>
        {({ threads, more }) =>
          threads.length === 0 ? (
            <Empty>Nobody has said anything yet. Each conversation, issue and pull request that is heard of stands here.</Empty>
          ) : (
            <>
              <ul class="list">
                {threads.map((thread) => (
                  <li key={thread.id}>
                    <a class="row-link found" href={`#/thread/${thread.id}`} data-row>
                      <span class="found-what muted">{placeOf(thread)}</span>
                      <span class="found-text">
                        <span dir="auto">{thread.title || thread.threadKey}</span>
                        <span class="muted fine-print found-more">{wordsOf(thread)}</span>
                      </span>
                      <span class="elapsed fine-print">
                        <Ago atMs={thread.updatedMs} />
                      </span>
                    </a>
                  </li>
                ))}
              </ul>
              {more ? (
                <p class="panel-note muted">The last {threads.length} are here. The search finds older ones by their words.</p>
              ) : null}
            </>
          )
        }
      </Answer>
    </Panel>
  );
}
