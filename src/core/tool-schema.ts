// A tool as models are told of it. Made once for each tool of the program, not with every request.
import * as z from "zod/mini";
import type { ToolSpecs } from "../protocol/model.ts";

const made = new WeakMap<ToolSpecs[string], object>();

/** The schema is only shown to the model: input comes back as the model wrote it, and the caller refuses what does not fit. */
export function toolSchema(spec: ToolSpecs[string]): object {
  const known = made.get(spec);
  if (known !== undefined) return known;
  const schema = z.toJSONSchema(spec.input, { target: "draft-7", io: "input" }) as object;
  made.set(spec, schema);
  return schema;
}
