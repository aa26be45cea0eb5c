// What an Endpoint owes other objects, carried out at least once: results to worker sessions, the machine's state to router and board.
import { nobody } from "../core/audience.ts";
import type { Machine } from "../core/command-ledger.ts";
import { boardName, type Env, readConfig, routerName } from "../env.ts";
import { faultPoint } from "../fault-point.ts";
import { withTimeout } from "../timeout.ts";
import type { CommandRows, OwedEffect } from "./command-rows.ts";
import type { OutputStore } from "./output.ts";

/** A receiver that hangs may not hold up the news for the others; what it gets again is harmless. */
const receiverTimeoutMs = 60_000;

export class EndpointEffects {
  readonly #env: Env;
  readonly #endpointId: string;
  readonly #rows: CommandRows;
  readonly #output: OutputStore;

  constructor(env: Env, endpointId: string, rows: CommandRows, output: OutputStore) {
    this.#env = env;
    this.#endpointId = endpointId;
    this.#rows = rows;
    this.#output = output;
  }

  /** Carries out all that is owed: in order for one receiver, and no receiver waits for another. Returns why some could not be told. */
  async run(): Promise<string[]> {
    const byTarget = Map.groupBy(this.#rows.owed(), (owed) => owed.target);
    const results = await Promise.allSettled([...byTarget.values()].map((owed) => this.#inOrder(owed)));
    return results.filter((result) => result.status === "rejected").map((result) => String(result.reason));
  }

  async #inOrder(owed: OwedEffect[]): Promise<void> {
    for (const item of owed) {
      await withTimeout(this.#carryOut(item), receiverTimeoutMs, item.target);
      this.#rows.done(item);
    }
  }

  async #carryOut({ effect }: OwedEffect): Promise<void> {
    const endpointId = this.#endpointId;
    const machine = this.#rows.machine();
    switch (effect.kind) {
      case "settle":
        return this.#settle(effect.commandId, effect.taskId);
      case "command_state": {
        const { commandId, state, online, taskId } = effect;
        return this.#env.WORKER_SESSION.getByName(taskId).commandState({ commandId, state, online, machine: machine?.name ?? endpointId });
      }
      case "stopped":
        return this.#env.WORKER_SESSION.getByName(effect.taskId).stopped({ endpointId, epoch: effect.epoch, offline: effect.offline });
      case "machine": {
        if (!machine) return;
        const { name, online, workspaces, revoked, revision } = machine;
        return this.#env.ROUTER.getByName(routerName).machine({ endpointId, name, online, workspaces, revoked, revision });
      }
      case "board":
        return machine ? this.#tellBoard(machine) : undefined;
    }
  }

  async #settle(commandId: string, taskId: string): Promise<void> {
    const entry = this.#rows.entry(commandId);
    if (!entry?.result) return;
    const output = await this.#output.settled(commandId, entry.command.audience ?? nobody);
    await this.#env.WORKER_SESSION.getByName(taskId).settle({ ...entry.result, taskId, endpointId: this.#endpointId, output });
    await faultPoint(readConfig(this.#env).faultUrl, "endpoint.result.handed");
  }

  async #tellBoard(machine: Machine): Promise<void> {
    const { endpointId, name, online, sinceMs, sandbox, revision } = machine;
    const board = this.#env.BOARD.getByName(boardName);
    if (machine.revoked) return board.change([{ kind: "endpoint_gone", endpointId }]);
    const endpoint = { endpointId, name, online, sinceMs, sandbox, revision, ...this.#rows.counts() };
    return board.change([{ kind: "endpoint", endpoint }]);
  }
}
