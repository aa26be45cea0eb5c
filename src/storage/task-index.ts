// The index of tasks in D1: a projection that may lag. Each write carries the whole card, and the highest revision wins.
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { TaskCard, TaskStart } from "../protocol/task.ts";
import { tasks } from "./d1-schema.ts";
import { migrated } from "./migrations.ts";

/** Who asked, for people; what somebody did that led to speculation was no asking. */
export const askerOf = (start: Pick<TaskStart, "quote" | "speculative">): string =>
  start.speculative === true ? "nobody" : start.quote.from.name;

/** Puts a task's card into the index; an older revision than the one there changes nothing. */
export async function indexTask(db: D1Database, start: TaskStart, card: TaskCard): Promise<void> {
  await migrated(db);
  const values = {
    threadId: start.threadId,
    endpointId: start.endpoint?.endpointId ?? null,
    decisionId: start.decisionId,
    source: start.source,
    place: start.place,
    askedBy: askerOf(start),
    card: JSON.stringify(card),
    revision: card.revision,
    updatedMs: card.updatedMs,
  };
  await drizzle(db)
    .insert(tasks)
    .values({ id: start.taskId, ...values })
    .onConflictDoUpdate({ target: tasks.id, set: values, setWhere: sql`${tasks.revision} < ${card.revision}` });
}
