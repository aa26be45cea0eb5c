import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { assetsFolder, buildAssets } from "../../src/local/build.ts";

const gzipKb = (...files: string[]): number =>
  files.reduce((sum, file) => sum + gzipSync(readFileSync(join(assetsFolder, file)), { level: 9 }).length, 0) / 1000;

beforeAll(() => buildAssets());

test("the loader, which every host page pays for, is at most 2 kB", () => {
  expect(gzipKb("widget.js")).toBeLessThanOrEqual(2);
});

test("the widget with its styles and its page is at most 40 kB", () => {
  expect(gzipKb("widget/index.html", "widget/app.js", "widget/app.css")).toBeLessThanOrEqual(40);
});

test("the console with its styles and its page is at most 120 kB", () => {
  expect(gzipKb("console/index.html", "console/app.js", "console/app.css")).toBeLessThanOrEqual(120);
});

test("no page asks for anything from another host", () => {
  for (const file of ["widget/index.html", "console/index.html", "demo/index.html", "widget/app.css", "console/app.css", "demo/demo.css"])
    expect(readFileSync(join(assetsFolder, file), "utf8")).not.toMatch(/<(?:script|link|img|iframe)[^>]*https?:|url\(|@import/);
});
