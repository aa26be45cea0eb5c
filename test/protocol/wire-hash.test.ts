// A changed frame is a changed contract with daemons and pages out there: the hash asks for a version bump and a line in the changelog.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { cloudFrame, daemonFrame, daemonProtocolVersion, enrolRequest, enrolResponse } from "../../src/protocol/daemon-frames.ts";
import { widgetClientFrame, widgetProtocol } from "../../src/protocol/widget-frames.ts";

const hashOf = (...schemas: z.core.$ZodType[]): string =>
  createHash("sha256")
    .update(JSON.stringify(schemas.map((schema) => z.toJSONSchema(schema, { unrepresentable: "any" }))))
    .digest("hex")
    .slice(0, 16);

test("the daemon's frames are those of its protocol version", () => {
  expect({ version: daemonProtocolVersion, hash: hashOf(daemonFrame, cloudFrame, enrolRequest, enrolResponse) }).toEqual({
    version: 1,
    hash: "19189f810edcb7d2",
  });
});

test("the page's frames are those of its protocol", () => {
  expect({ protocol: widgetProtocol, hash: hashOf(widgetClientFrame) }).toEqual({ protocol: "switchyard.v1", hash: "4742ff041ee1f1d5" });
});
