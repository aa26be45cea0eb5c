// The JSON body of a request, checked; a wrong one is a sentence that names the field.
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type * as z from "zod/mini";
import { Fault } from "../protocol/fault.ts";
import { firstIssue } from "../protocol/issue.ts";

/** Refuses a larger body. `what` begins the sentence that says so. */
export const bodyAtMost = (maxSize: number, what: string): MiddlewareHandler =>
  bodyLimit({
    maxSize,
    onError: () => {
      throw new Fault("too_large", `${what} is smaller than ${maxSize / 1024} KiB.`);
    },
  });

export async function bodyOf<T>(c: Context, schema: z.ZodMiniType<T>): Promise<T> {
  const body = schema.safeParse(
    await c.req.json<unknown>().catch(() => {
      throw new Fault("bad_input", "The body must be JSON.");
    }),
  );
  if (body.success) return body.data;
  throw new Fault("bad_input", firstIssue(body.error, "body"));
}
