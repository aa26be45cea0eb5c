// All threads that heard something, the latest first: where people talk, and where tasks do.
import type { BoardState } from "../../protocol/board.ts";
import type { ThreadsAnswer } from "../../protocol/console.ts";
import { placeOf } from "./model.ts";
import { Ago, Answer, Empty, Panel, useAnswer } from "./parts.tsx";

const wordsOf = ({ source, threadKey, title }: ThreadsAnswer["threads"][number]): string =>
  source !== "web"
    ? threadKey.endsWith(`:${title}`)
      ? ""
      : threadKey
    : threadKey.startsWith("topic:")
      ? "thread of a task"
      : "conversation";

export function ThreadsPage(props: { board: BoardState }) {
  const answer = useAnswer<ThreadsAnswer>("threads", props.board);
  return (
    <Panel title="Threads" count={answer.kind === "here" ? answer.value.total : undefined}>
      <Answer of={answer}>
        {({ threads, total }) =>
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
              {total === threads.length ? null : (
                <p class="panel-note muted">And {total - threads.length} older ones: the search finds them by their words.</p>
              )}
            </>
          )
        }
      </Answer>
    </Panel>
  );
}
