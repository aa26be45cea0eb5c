import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { version } from "../../src/protocol/version.ts";

test("the version that the code tells is that of package.json", () => {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  expect(version).toBe(manifest.version);
});
