// The shape of all work in the background: one run at a time, and none that was asked for is lost.

/** Runs one thing at a time, and once more if it was asked meanwhile. Errors go to `onError`, which arms a retry. */
export class Pump {
  #running: Promise<void> | null = null;
  #again = false;
  readonly #work: () => Promise<void>;
  readonly #onError: (error: unknown) => void;

  constructor(work: () => Promise<void>, onError: (error: unknown) => void) {
    this.#work = work;
    this.#onError = onError;
  }

  /** Starts the work, or has it run again when it is under way. Resolves when nothing is left that was asked for. */
  kick(): Promise<void> {
    this.#again = true;
    this.#running ??= this.#loop().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #loop(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      try {
        await this.#work();
      } catch (error) {
        // What was asked for meanwhile is still done; what failed waits for the retry that `onError` arms.
        this.#onError(error);
      }
    }
  }
}
