// List prices in US dollars, in one place. Cloudflare's are of its public pricing pages (developers.cloudflare.com: Workers, Durable
// Objects, D1, R2; Paid plan, beyond what is included), the model's of Anthropic's public price list for a mid-sized model.
import type { Counts } from "../worker/counts.ts";
import type { Tokens } from "./model-server.ts";
import { sum } from "./statistics.ts";

export const prices = {
  workerRequest: 0.3e-6,
  /** A call, an alarm that runs, or twenty socket messages that come in. */
  objectRequest: 0.15e-6,
  socketMessagesARequest: 20,
  /** 128 MB at 12.50 dollars a million GB seconds. */
  activeSecond: 1.6e-6,
  rowRead: 1e-9,
  /** Setting an alarm is billed as a row. */
  rowWritten: 1e-6,
  r2Write: 4.5e-6,
  r2Read: 0.36e-6,
  tokenIn: 3e-6,
  tokenCached: 0.3e-6,
  tokenOut: 15e-6,
} as const;

const objectsOf = (counts: Counts) => Object.values(counts.objects);

export const rowsWritten = (counts: Counts): number =>
  sum(objectsOf(counts).map((each) => each.rowsWritten + each.alarmsSet)) + counts.d1.rowsWritten;

export const callsOf = (counts: Counts): number => sum(objectsOf(counts).flatMap((each) => Object.values(each.calls)));

/** Everything but tokens. `activeSeconds` beyond what calls took: an object that waits for a model is active too. */
export function platformDollars(counts: Counts, activeSeconds = 0): number {
  const objects = objectsOf(counts);
  const requests =
    callsOf(counts) +
    sum(objects.map((each) => each.alarmsRun)) +
    sum(objects.map((each) => each.socketMessages)) / prices.socketMessagesARequest;
  const active = sum(objects.map((each) => each.activeMs)) / 1_000 + activeSeconds;
  const rowsRead = sum(objects.map((each) => each.rowsRead)) + counts.d1.rowsRead;
  return (
    prices.workerRequest * counts.requests +
    prices.objectRequest * requests +
    prices.activeSecond * active +
    prices.rowRead * rowsRead +
    prices.rowWritten * rowsWritten(counts) +
    prices.r2Write * counts.r2.writes +
    prices.r2Read * counts.r2.reads
  );
}

export const tokenDollars = ({ cached, uncached, output }: Tokens): number =>
  prices.tokenCached * cached + prices.tokenIn * uncached + prices.tokenOut * output;
