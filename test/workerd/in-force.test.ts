import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Env } from "../../src/env.ts";
import { InForce } from "../../src/storage/in-force.ts";

const { DB } = env as unknown as Env;

test("what is saved while a read is under way is in force with the next look, not ten seconds later", async () => {
  const read = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  let saved = { text: "old" };
  const setting = new InForce(
    "test",
    async () => {
      const seen = saved;
      going.resolve();
      await read.promise;
      return seen;
    },
    null,
  );
  const before = setting.get(DB, 1_000);
  await going.promise;
  saved = { text: "new" };
  setting.changed(DB);
  read.resolve();
  expect(await before).toEqual({ text: "old" });
  expect(await setting.get(DB, 1_001)).toEqual({ text: "new" });
});

test("while D1 is away what was last known holds, then what holds without it; a setting without either is a fault", async () => {
  let away = true;
  const read = async () => {
    if (away) throw new Error("D1 is away");
    return { text: "saved" };
  };
  const mild = new InForce("test", read, { text: "shipped" });
  const strict = new InForce<{ text: string }>("test", read, null);
  expect(await mild.get(DB, 0)).toEqual({ text: "shipped" });
  await expect(strict.get(DB, 0)).rejects.toThrow("D1 is away");
  away = false;
  expect(await strict.get(DB, 1)).toEqual({ text: "saved" });
  expect(await mild.get(DB, 20_000)).toEqual({ text: "saved" });
  away = true;
  expect(await mild.get(DB, 40_000)).toEqual({ text: "saved" });
  mild.changed(DB);
  expect(await mild.get(DB, 40_001)).toEqual({ text: "saved" });
  await expect(strict.get(DB, 40_000)).rejects.toThrow("D1 is away");
});
