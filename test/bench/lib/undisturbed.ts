// Blocks that others disturbed are measured again, and it is said how many: a time beside somebody else's load is none of ours.
import { foreignLoad } from "./foreign-load.ts";
import type { Figures } from "./result.ts";

/** Of all cores. What the machine does by itself stays below. */
const maxShare = 0.15;

export class Undisturbed {
  /** Seconds of CPU that the bench's other processes used so far. */
  readonly #used: () => number;
  #left: number;
  #discarded = 0;
  #highest = 0;

  /** `repeats`: so many blocks are measured again at most; on a machine that is never quiet the others count, and it is said how quiet it was. */
  constructor(used: () => number, repeats: number) {
    this.#used = used;
    this.#left = repeats;
  }

  async block<T>(measure: () => Promise<T>): Promise<T> {
    for (;;) {
      const usedBefore = this.#used();
      const foreign = foreignLoad();
      const done = await measure();
      const share = foreign(this.#used() - usedBefore);
      if (share <= maxShare || this.#left === 0) {
        this.#highest = Math.max(this.#highest, share);
        return done;
      }
      this.#left -= 1;
      this.#discarded += 1;
      console.error(
        `Others used ${Math.round(share * 100)} % of the machine: a block is measured again (${this.#left} times more at most).`,
      );
    }
  }

  figures(): Figures {
    return {
      "blocks discarded because others used the machine": this.#discarded,
      "most that others used of it in a block that counts, share": this.#highest,
    };
  }
}
