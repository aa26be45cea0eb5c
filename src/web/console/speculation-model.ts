// What consoles say of work that nobody asked for, and how its places are written.
import type { Speculation, SpeculationFigures, SpeculationOutcome, SpeculationSetting } from "../../protocol/speculation.ts";

/** What a policy allows when somebody ticks the box: small. */
export const firstSetting: SpeculationSetting = { places: [], callsPerTask: 8, callsPerDay: 40, maxWastedCalls: 100 };

/** One place a line: `github acme/app`; `github *` is every place of the source. */
export const placesText = (places: SpeculationSetting["places"]): string =>
  places.map(({ source, place }) => `${source} ${place}`).join("\n");

export const placesOf = (text: string): SpeculationSetting["places"] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => {
      const [source = "", ...place] = line.split(/\s+/);
      return { source, place: place.join(" ") };
    });

export const outcomeWord: Record<SpeculationOutcome, string> = {
  running: "at work",
  offered: "offered, waits for a person",
  accepted: "accepted",
  edited: "accepted after an edit",
  rejected: "declined",
  expired: "nobody answered",
  discarded: "discarded",
  moot: "not needed any more",
  cancelled: "stopped",
  adopted: "asked for meanwhile",
};

const money = (dollars: number): string => `$${dollars < 1 ? dollars.toFixed(3) : dollars.toFixed(2)}`;
const calls = (count: number): string => `${count} model ${count === 1 ? "call" : "calls"}`;

/** `3 tasks; 1 of 2 offers accepted; 12 of 30 model calls ($0.12 of $0.30) spent for nothing`. */
export function figureWords(figures: SpeculationFigures): string {
  const { outcomes, tasks, acceptedShare, dollars, wastedDollars } = figures;
  const taken = (outcomes.accepted ?? 0) + (outcomes.edited ?? 0);
  const answered = taken + (outcomes.rejected ?? 0) + (outcomes.expired ?? 0);
  const cost = dollars === null || wastedDollars === null ? "" : ` (${money(wastedDollars)} of ${money(dollars)})`;
  return [
    `${tasks} ${tasks === 1 ? "task" : "tasks"}`,
    acceptedShare === null ? "no offer answered yet" : `${taken} of ${answered} offers accepted (${Math.round(acceptedShare * 100)} %)`,
    `${figures.wastedCalls} of ${calls(figures.calls)}${cost} spent for nothing`,
    `${calls(figures.callsToday)} of the last 24 hours`,
  ].join("; ");
}

/** What one task came to, in a line. */
export function rowWords({ outcome, why, spent, dollars, reservedCalls }: Speculation): string {
  const cost = spent === null ? `${calls(reservedCalls)} reserved` : calls(spent.calls);
  return [outcomeWord[outcome] + (why === "" ? "" : `: ${why}`), dollars === null ? cost : `${cost}, ${money(dollars)}`].join(" · ");
}
