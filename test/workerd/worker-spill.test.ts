// Long answers of reads: within the caps of one result and of a step, and whole under an id.
import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { putArtifact } from "../../src/storage/artifacts.ts";
import { recallObject } from "../../src/storage/recall.ts";
import { begin, danglingCalls, done, newTask, objects, requests, script, untilStatus } from "./worker-helpers.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

test("[W17] six long recalls in one step are spilled, not cut: head, tail, size and id, all of each readable, only by whom it may be heard", async () => {
  const task = newTask();
  const texts = Array.from({ length: 6 }, (_, i) => `${i}: ${`line of "text" ${i}\n`.repeat(700)}`);
  const from = { audience: "github acme/app", tainting: false };
  const ids = await Promise.all(texts.map((text) => putArtifact(objects.STORE, bytesOf(text), "text/plain", from)));
  await script(task, [{ calls: ids.map((id) => ({ tool: "recall", input: { id } })) }, done("read all")]);
  await begin(task);
  await untilStatus(task, "done");
  await evictDurableObject(task.stub as never);
  const last = (await requests(task)).at(-1) ?? [];
  expect(danglingCalls(last)).toEqual([]);
  const results = last.filter(({ role }) => role === "tool").map(({ content }) => content ?? "");
  expect(results).toHaveLength(6);
  expect(results.join("").length).toBeLessThanOrEqual(limits.inlineStepChars);
  for (const [i, result] of results.entries()) {
    expect(result).not.toContain("left out here");
    const spilled = JSON.parse(result) as { chars: number; artifact: string; head: string; tail: string };
    const page = await recallObject(objects, { id: ids[i] ?? "", page: 1 });
    expect(spilled.chars).toBe(page.text.length);
    expect(page.text.startsWith(spilled.head) && page.text.endsWith(spilled.tail)).toBe(true);
    const whole = await (await objects.STORE.get(`artifact/${spilled.artifact}`))?.text();
    expect(whole).toBe(page.text);
    // Its own task may read it as its own; others only what may be said to them, tainted as its source is.
    const read = (reader: string) => recallObject(objects, { id: spilled.artifact, page: 1, readers: [reader] });
    expect(await read("web prs_member")).toMatchObject({ tainting: false, audience: "github acme/app" });
    expect((await read("github acme/other")).text).toContain("belongs to another conversation");
  }
});

test("[W17] [A4] a spilled copy of a stranger's words taints who reads it by its id", async () => {
  const task = newTask();
  const from = { audience: `web ${task.start.quote.from.id}`, tainting: true };
  const id = await putArtifact(objects.STORE, bytesOf(`a stranger wrote ${'"'.repeat(9000)}`), "text/plain", from);
  await script(task, [{ calls: [{ tool: "recall", input: { id } }] }, done("read it")]);
  await begin(task);
  await untilStatus(task, "done");
  expect((await task.stub.describe())?.tainted).toBe(true);
  const result = (await requests(task)).at(-1)?.find(({ role }) => role === "tool")?.content ?? "{}";
  const { artifact } = JSON.parse(result) as { artifact: string };
  expect(await recallObject(objects, { id: artifact, page: 1 })).toMatchObject({
    tainting: true,
    audience: `web ${task.start.quote.from.id}`,
  });
});
