import { Fault } from "../../src/protocol/fault.ts";

/** The fault that a piece of work ends with; whatever else it ends with fails the test. */
export async function faultOf(work: Promise<unknown>): Promise<Fault> {
  const thrown = await work.then(
    () => null,
    (error: unknown) => error,
  );
  if (thrown instanceof Fault) return thrown;
  throw new Error(`No fault, but ${thrown === null ? "an answer" : String(thrown)}.`, { cause: thrown });
}
