// The JSON body of a request, checked; a wrong one is a sentence that names the field.
import type { Context } from "hono";
import type * as z from "zod/mini";
import { Fault } from "../protocol/fault.ts";
import { firstIssue } from "../protocol/issue.ts";

export async function bodyOf<T>(c: Context, schema: z.ZodMiniType<T>): Promise<T> {
  const body = schema.safeParse(
    await c.req.json<unknown>().catch(() => {
      throw new Fault("bad_input", "The body must be JSON.");
    }),
  );
  if (body.success) return body.data;
  throw new Fault("bad_input", firstIssue(body.error, "body"));
}
