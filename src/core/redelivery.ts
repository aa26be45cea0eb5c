// Which of GitHub's failed deliveries are asked for again. GitHub never retries by itself; within three days it does when asked.

/** One attempt, as GitHub lists it: several attempts of one event share a guid; `again`: it was asked for. */
export type DeliveryAttempt = { id: number; guid: string; atMs: number; ok: boolean; again: boolean; event: string };

/** How far back GitHub can deliver again; a little less than its three days, so that the last hour is not tried in vain. */
export const redeliverBackMs = 3 * 24 * 60 * 60_000 - 10 * 60_000;
/** An event that fails this often fails because of itself. */
export const maxAttempts = 6;
const firstWaitMs = 60_000;

export type RedeliveryPlan = {
  /** Attempts to repeat, in order: what people said before what programs did, the oldest first. */
  redeliver: DeliveryAttempt[];
  /** When the oldest event came that is neither delivered nor given up; null when there is none. */
  openSinceMs: number | null;
  givenUp: number;
};

const saidByPeople = /^(issues|issue_comment|pull_request|pull_request_review|pull_request_review_comment)$/;

/** Each failed attempt doubles the wait before the next. */
const dueMs = (attempts: readonly DeliveryAttempt[]): number =>
  Math.max(...attempts.map(({ atMs }) => atMs)) + firstWaitMs * 2 ** (attempts.length - 1);

/** [G8] An event is repeated only while no attempt of it succeeded, with growing waits, and at most `max` of them in a run. */
export function planRedelivery(listed: readonly DeliveryAttempt[], nowMs: number, max: number): RedeliveryPlan {
  const failed = [...Map.groupBy(listed, ({ guid }) => guid).values()].filter((attempts) => attempts.every(({ ok }) => !ok));
  const open = failed.filter((attempts) => attempts.length < maxAttempts);
  const cameMs = (attempts: readonly DeliveryAttempt[]): number => Math.min(...attempts.map(({ atMs }) => atMs));
  const due = open
    .filter((attempts) => dueMs(attempts) <= nowMs && cameMs(attempts) > nowMs - redeliverBackMs)
    .sort((a, b) => Number(saidByPeople.test(b[0]?.event ?? "")) - Number(saidByPeople.test(a[0]?.event ?? "")) || cameMs(a) - cameMs(b));
  return {
    redeliver: due.slice(0, max).flatMap((attempts) => attempts.toSorted((a, b) => b.atMs - a.atMs)[0] ?? []),
    openSinceMs: open.length === 0 ? null : Math.min(...open.map(cameMs)),
    givenUp: failed.length - open.length,
  };
}
