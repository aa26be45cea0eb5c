// Load from a process of its own: a closed loop that finds the ceiling, and an open one whose latencies count from the scheduled time.
import { type ChildProcess, fork } from "node:child_process";
import path from "node:path";
import { genericSecret, webhookSecret } from "./deployment.ts";
import { cpuSecondsOf } from "./runtimes.ts";

/** What is sent: signed webhooks by their numbers, or a body to the bare platform. */
export type Workload =
  | {
      what: "webhooks";
      gitHubSecret: string;
      genericSecret: string;
      /** Numbers of events; the same number is the same body. */
      from: number;
      count: number;
      /** They go to so many threads in turn, half of them issues and half chat rooms, from this one on. */
      threads: number;
      firstThread: number;
      /** Every so-manyth request repeats an earlier one; 0 repeats none. */
      repeatEvery: number;
    }
  /** To the bare platform; `keeps`: what comes becomes a row. */
  | { what: "bare"; keeps: boolean };

export type Load = {
  port: number;
  workload: Workload;
  connections: number;
  seconds: number;
  /** Requests a second, whatever the answers do; null: each connection sends when its last one was answered. */
  perSecond: number | null;
  /** Says which trigger each request became. */
  keepIds: boolean;
};

export type Loaded = {
  /** Milliseconds of each request that was taken. */
  latencies: number[];
  accepted: number;
  refused: number;
  /** Connections that broke or were refused. */
  broken: number;
  seconds: number;
  /** Numbers of the workload that were answered 202, with their trigger. */
  acknowledged: { n: number; id: string }[];
  sent: number;
};

type Where = { threads: number; firstThread: number; repeatEvery: number };
const anywhere: Where = { threads: 400, firstThread: 0, repeatEvery: 0 };

/** Webhooks whose numbers were not used before. */
export class Webhooks {
  #next = 0;

  /** The number of the next one. */
  get from(): number {
    return this.#next;
  }

  fresh(count: number, where: Partial<Where> = {}): Workload {
    const from = this.#next;
    this.#next += count;
    return this.again(from, count, where);
  }

  again(from: number, count: number, where: Partial<Where> = {}): Workload {
    return { what: "webhooks", gitHubSecret: webhookSecret, genericSecret, from, count, ...anywhere, ...where };
  }
}

const script = path.join(import.meta.dirname, "load-process.ts");

export class LoadGenerator {
  readonly #child: ChildProcess = fork(script, { stdio: ["ignore", "inherit", "inherit", "ipc"] });

  /** `started` is called when everything is signed and the clock begins. */
  run(load: Load, started: () => void = () => {}): Promise<Loaded> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`the load generator ended with ${code}`));
      const heard = (message: "started" | Loaded): void => {
        if (message === "started") {
          started();
          return;
        }
        this.#child.off("exit", ended);
        this.#child.off("message", heard);
        resolve(message);
      };
      this.#child.once("exit", ended);
      this.#child.on("message", heard);
      this.#child.send(load);
    });
  }

  /** Seconds of CPU that its process used. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.#child.pid ?? 0);
  }

  stop(): void {
    this.#child.kill();
  }
}
