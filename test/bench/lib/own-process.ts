// Part of a benchmark in a process of its own: what it costs holds up no other part.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** The parent's side: one order at a time, each with its answer. */
export class OwnProcess<Order, Answer> {
  readonly #child: ChildProcess;

  /** `module` calls `serveOrders` when it is the one that was started. */
  constructor(module: string) {
    // As JSON, what was not measured would arrive as nothing, and nothing is below every bound.
    this.#child = fork(module, { stdio: ["ignore", "inherit", "inherit", "ipc"], serialization: "advanced" });
  }

  ask(order: Order): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`A process of this benchmark ended with ${code}.`));
      this.#child.once("exit", ended);
      this.#child.once("message", (answer: Answer) => {
        this.#child.off("exit", ended);
        resolve(answer);
      });
      this.#child.send(order as object);
    });
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.disconnect();
    await exit;
  }
}

/** The child's side. It ends when its parent lets go of it or is gone, after `close`. */
export function serveOrders<Order, Answer>(take: (order: Order) => Promise<Answer>, close: () => Promise<void>): void {
  process.on("message", (order: Order) => {
    take(order).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  process.on("disconnect", () => void close().finally(() => process.exit(0)));
}
