// One design of the end-to-end experiment in a process of its own: its model, its machine and its rows hold up no other design.
import { type Clock, type RealDesign, type RealRun, RealSystem } from "./e2e-run.ts";
import type { Workload } from "./e2e-workload.ts";
import { OwnProcess, serveOrders } from "./lib/own-process.ts";

type Order = { order: "start"; design: RealDesign; workload: Workload; speed: number } | { order: "run"; clock: Clock };

/** A `RealSystem` at arm's length. */
export class RealTier {
  readonly #process = new OwnProcess<Order, RealRun | null>(import.meta.filename);

  static async start(design: RealDesign, workload: Workload, speed: number): Promise<RealTier> {
    const tier = new RealTier();
    await tier.#process.ask({ order: "start", design, workload, speed });
    return tier;
  }

  async run(clock: Clock): Promise<RealRun> {
    const run = await this.#process.ask({ order: "run", clock });
    if (run === null) throw new Error("A design ran and said nothing.");
    return run;
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}

if (process.argv[1] === import.meta.filename) {
  let system: RealSystem | null = null;
  serveOrders<Order, RealRun | null>(
    async (given) => {
      if (given.order === "run") return (await system?.run(given.clock)) ?? null;
      system = await RealSystem.start(given.design, given.workload, given.speed);
      return null;
    },
    async () => system?.close(),
  );
}
