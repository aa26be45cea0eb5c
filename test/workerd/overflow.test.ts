// [Q13] Giant outputs, many middling ones, and answers without an end: what is inlined is bounded, no cell is large, nothing loops.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeAll, expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { getArtifact } from "../../src/storage/artifacts.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { recallObject } from "../../src/storage/recall.ts";
import { decided, newLab, script as routerScript, say } from "./router-lab.ts";
import { TestDaemon } from "./test-daemon.ts";
import {
  begin,
  deliver,
  done,
  member,
  newTask,
  objects,
  reports,
  requests,
  row,
  script,
  untilRequests,
  untilStatus,
} from "./worker-helpers.ts";

beforeAll(() => migrated(objects.DB));

/** The largest value that an object keeps in its SQLite. */
const largestCell = (stub: unknown): Promise<number> =>
  runInDurableObject(stub as never, (_instance: unknown, { storage }: DurableObjectState) => {
    const tables = storage.sql.exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
    );
    return Math.max(
      ...tables.toArray().flatMap(({ name }) =>
        storage.sql
          .exec<{ name: string }>(`SELECT name FROM pragma_table_info('${name}')`)
          .toArray()
          .map(
            (column) =>
              storage.sql.exec<{ n: number | null }>(`SELECT MAX(LENGTH(CAST("${column.name}" AS BLOB))) AS n FROM "${name}"`).one().n ?? 0,
          ),
      ),
    );
  });

type Shown = { command: string; output: string; artifact?: string };
/** The results that a request shows. */
const resultsIn = (request: { content: string | null }[] | undefined): Shown[] =>
  (request ?? [])
    .flatMap(({ content }) => (content ?? "").split("\n"))
    .flatMap((line) => (line.startsWith('{"item":"result"') ? [JSON.parse(line) as Shown] : []));

/** A task whose commands are on its machine while its next model call is out: what ends now comes together. */
async function running(name: string, count: number) {
  const daemon = await TestDaemon.enrol(`overflow-${name}`);
  await daemon.connect();
  const task = newTask({ endpoint: { endpointId: daemon.endpointId, name, workspaces: ["app"] } });
  await script(task, [scripts(count), { ...progress, delayMs: 1500 }, done("finally")]);
  await begin(task);
  const runs: string[] = [];
  for (let i = 0; i < count; i++) runs.push((await daemon.next("run")).command.commandId);
  await deliver(task, row(task, 1, "and?"));
  await untilRequests(task, 2);
  return { task, daemon, runs };
}

function ended(daemon: TestDaemon, commandId: string, text: string): void {
  daemon.send({ t: "started", commandId, atMs: Date.now() });
  for (let at = 0; at < text.length; at += 100_000) daemon.output(commandId, at, text.slice(at, at + 100_000));
  daemon.result(commandId, text.length);
}

const progress = { calls: [{ tool: "report", input: { kind: "progress", text: "a word" } }] };
const scripts = (count: number) => ({
  calls: Array.from({ length: count }, (_, i) => ({ tool: "run_command", input: { script: `run ${i}` } })),
});

test("[Q13] three giant outputs in one step: head, tail, size and id of each, all of each readable, no large cell, and the task finishes", async () => {
  const sizes = [38_662, 155_016, 136_693];
  const { task, daemon, runs } = await running("giant", 3);
  for (const [i, commandId] of runs.entries()) {
    const text = `${i} begins ${"0123456789\n".repeat(15_000)}`.slice(0, (sizes[i] ?? 0) - 7);
    ended(daemon, commandId, `${text} ends ${i}`);
  }
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  const shown = resultsIn((await requests(task)).at(-1));
  expect(shown).toHaveLength(3);
  expect(shown.reduce((sum, { output }) => sum + output.length, 0)).toBeLessThanOrEqual(limits.inlineStepChars);
  for (const { command, output, artifact } of shown) {
    const i = runs.indexOf(command);
    expect([output.startsWith(`${i} begins`), output.endsWith(` ends ${i}`)]).toEqual([true, true]);
    expect(output).toContain(`recall ${artifact}`);
    expect((await getArtifact(objects.STORE, artifact ?? ""))?.bytes.byteLength).toBe(sizes[i]);
  }
  expect(await largestCell(task.stub)).toBeLessThan(limits.maxCellBytes);
  expect(await largestCell(daemon.stub)).toBeLessThan(limits.maxCellBytes);
});

test("[Q13] eight middling outputs in one step: each is within its cap, their sum is shortened too, and each is readable by its id", async () => {
  const { task, daemon, runs: ids } = await running("middling", 8);
  const texts = ids.map((_, i) => `${i} begins ${"x".repeat(7_900)} ends ${i}`);
  for (const [i, id] of ids.entries()) ended(daemon, id, texts[i] ?? "");
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  const shown = resultsIn((await requests(task)).at(-1));
  expect(shown.map(({ command }) => command)).toEqual(ids);
  expect(shown.reduce((sum, { output }) => sum + output.length, 0)).toBeLessThanOrEqual(limits.inlineStepChars);
  for (const [i, { output, command }] of shown.entries()) {
    expect([output.startsWith(`${i} begins`), output.endsWith(` ends ${i}`)]).toEqual([true, true]);
    expect(output).toContain(`recall ${command} has all of it`);
    const pages = await Promise.all([1, 2].map((page) => recallObject(objects, { id: command, page })));
    const read = pages.map(({ text }) => (JSON.parse(text.split("\n").at(-1) ?? "{}") as { output: string }).output);
    expect(read.join("")).toBe(texts[i]);
  }
});

test("[Q13] an answer without an end is taken by nobody: the task pauses with a choice, and goes on", async () => {
  const task = newTask();
  await script(task, [{ text: "y".repeat(400_000) }, done("finally")]);
  await begin(task);
  await untilStatus(task, "paused");
  await evictDurableObject(task.stub as never);
  expect((await reports(task)).at(-1)?.text).toMatch(/longer than 160000 characters.*Continue without what came last, or stop\?/);
  await task.stub.resume({ by: member, modelCalls: 5 });
  await untilStatus(task, "done");
  expect(await largestCell(task.stub)).toBeLessThan(limits.maxCellBytes);
});

test("[Q13] sixty rows as large as a trigger may be, of signs that JSON makes six times longer, brick neither a task nor the router", async () => {
  const text = "\u0001".repeat(limits.maxTriggerBytes - 500);
  const task = newTask();
  await script(task, [{ ...progress, delayMs: 1500 }, done("finally"), done("finally")]);
  await begin(task);
  await untilRequests(task, 1);
  for (let i = 0; i < 3; i++) await deliver(task, ...Array.from({ length: 20 }, (_, n) => row(task, i * 20 + n + 1, `${i}-${n} ${text}`)));
  await untilStatus(task, "done");
  expect((await requests(task)).flat().filter(({ content }) => content?.includes('"seq":60,'))).not.toEqual([]);
  expect(await largestCell(task.stub)).toBeLessThan(limits.maxCellBytes);

  const lab = await newLab();
  await routerScript(lab.token, [
    { calls: [{ tool: "record", input: { settles: ["$all"], reason: "kept" } }], delayMs: 1500 },
    ...Array.from({ length: 20 }, () => ({ calls: [{ tool: "record", input: { settles: ["$all"], reason: "kept" } }] })),
  ]);
  const said = [];
  for (let i = 0; i < 12; i++)
    said.push(await say(lab, { name: `${lab.token}${i}`, by: member, thread: `${lab.token}${i}`, text: `${lab.token} ${text}` }));
  for (const { id } of said) expect((await decided(lab, id)).by).toBe("model");
  await evictDurableObject(lab.router as never);
  expect(await largestCell(lab.router)).toBeLessThan(limits.maxCellBytes);
  expect(await largestCell(objects.THREAD.getByName(said[0]?.threadId ?? ""))).toBeLessThan(limits.maxCellBytes);
});
