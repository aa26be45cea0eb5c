import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { commandOutputType, getArtifact } from "../../src/storage/artifacts.ts";
import { migrated } from "../../src/storage/migrations.ts";
import { boundary } from "../../src/storage/output.ts";
import { bindings, commandFor, listen, newTask, TestDaemon } from "./test-daemon.ts";

beforeAll(() => migrated(bindings.DB));
afterEach(() => void vi.useRealTimers());

const stubOf = (daemon: TestDaemon) => daemon.stub as unknown as DurableObjectStub;

/** A connected daemon with one command under way, and what its worker session hears. */
async function running(name: string) {
  const daemon = await TestDaemon.enrol(name);
  const told = await listen(daemon);
  await daemon.connect();
  const command = commandFor(daemon, newTask());
  await daemon.stub.submit(command);
  await daemon.next("run");
  return { daemon, told, commandId: command.commandId };
}

test("[R13] repeated and overlapping output is stored once, and each frame is acknowledged up to what is stored", async () => {
  const { daemon, told, commandId } = await running("overlap");
  daemon.output(commandId, 0, "abcdef");
  daemon.output(commandId, 0, "abcdef");
  await evictDurableObject(stubOf(daemon));
  await listen(daemon, told);
  daemon.output(commandId, 3, "defghi");
  daemon.output(commandId, 1, "bc");
  daemon.result(commandId, 9);
  await vi.waitFor(() => expect(told.settled).toMatchObject([{ output: { text: "abcdefghi", spilled: false } }]));
  const acks = daemon.takeAll().flatMap((frame) => (frame.t === "output_ack" ? [frame.offset] : []));
  expect(acks).toEqual([6, 6, 9, 9]);
});

test("[R13] a gap closes the connection, and the next welcome says where to go on", async () => {
  const { daemon, told, commandId } = await running("gap");
  daemon.output(commandId, 0, "abc");
  daemon.output(commandId, 7, "hij");
  expect(await daemon.closing()).toEqual({ code: 4400, reason: "protocol error: offset: is 7, expected 3" });
  const welcome = await daemon.connect([{ commandId, state: "finished", outputBytes: 10 }]);
  expect(welcome.output).toEqual([{ commandId, offset: 3 }]);
  daemon.output(commandId, 3, "defghij");
  daemon.result(commandId, 10);
  await vi.waitFor(() => expect(told.settled).toMatchObject([{ output: { text: "abcdefghij" } }]));
});

test("[R13] a result that comes before its output is held, also through an eviction, and settles when the output is whole", async () => {
  const { daemon, told, commandId } = await running("held");
  daemon.output(commandId, 0, "abc");
  daemon.result(commandId, 6);
  await daemon.next("output_ack");
  await evictDurableObject(stubOf(daemon));
  await listen(daemon, told);
  expect(daemon.takeAll()).toEqual([]);
  expect(await daemon.states(commandId)).not.toContain("settled");
  daemon.output(commandId, 3, "def");
  expect(await daemon.next("result_ack")).toEqual({ t: "result_ack", commandId });
  await vi.waitFor(() => expect(told.settled).toMatchObject([{ outputBytes: 6, output: { text: "abcdef" } }]));
});

test("output that a result promised and that never comes is said to be missing after ten minutes", async () => {
  const { daemon, told, commandId } = await running("missing");
  daemon.output(commandId, 0, "abc");
  daemon.result(commandId, 6);
  await daemon.next("output_ack");
  await daemon.stub.describe();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11 * 60_000 });
  // The sweep closes the silent connection first; the machine comes back and has no more to give.
  await runDurableObjectAlarm(stubOf(daemon));
  await daemon.connect([{ commandId, state: "finished", outputBytes: 3 }]);
  vi.setSystemTime(Date.now() + 11 * 60_000);
  await daemon.connect([{ commandId, state: "finished", outputBytes: 3 }]);
  await runDurableObjectAlarm(stubOf(daemon));
  await vi.waitFor(() =>
    expect(told.settled).toMatchObject([
      { truncatedBytes: 3, reason: "The last 3 bytes of its output did not arrive.", output: { text: "abc" } },
    ]),
  );
});

test("long output goes to an artifact and its result has head, tail and id; the whole is readable by offsets and through the artifact", async () => {
  const { daemon, told, commandId } = await running("spill");
  const text = Array.from({ length: 40_000 }, (_, n) => `${n}: é🎉漢\n`).join("");
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += limits.maxOutputChunkBytes - 1)
    daemon.output(commandId, at, bytes.subarray(at, at + limits.maxOutputChunkBytes - 1));
  daemon.result(commandId, bytes.length);
  await vi.waitFor(() => expect(told.settled).toHaveLength(1), 10_000);
  const output = told.settled[0]?.output;
  if (!output?.spilled) throw new Error("the output was not spilled");
  expect(output.totalBytes).toBe(bytes.length);
  expect(text.startsWith(output.head)).toBe(true);
  expect(text.endsWith(output.tail)).toBe(true);
  expect(output.head.length + output.tail.length).toBeLessThanOrEqual(limits.inlineResultChars);
  expect(output.head.length).toBeGreaterThan(1000);
  expect((await getArtifact(bindings.STORE, output.artifactId))?.bytes).toEqual(bytes);
  expect((await bindings.STORE.head(`artifact/${output.artifactId}`))?.httpMetadata?.contentType).toBe(commandOutputType);
  const rows = await runInDurableObject(stubOf(daemon), (_, state) =>
    state.storage.sql.exec("SELECT COUNT(*) AS n FROM output WHERE command_id = ?", commandId).one(),
  );
  expect(rows).toEqual({ n: 0 });
  await evictDurableObject(stubOf(daemon));
  let read = "";
  for (let offset = 0, done = false; !done; ) {
    const part = await daemon.stub.readOutput({ commandId, offset, limit: 100_001 });
    if (!part) throw new Error("no output");
    read += part.text;
    ({ offset, done } = part);
  }
  expect(read).toBe(text);
});

test("[R29] while R2 is down a long result is kept and handed over later; other results do not wait for it", async () => {
  const { daemon, told, commandId } = await running("r2-down");
  const put = vi.fn(async (): Promise<never> => {
    throw new Error("R2 is down");
  });
  const restore = await runInDurableObject(stubOf(daemon), (instance) => {
    const store = (instance as unknown as { env: { STORE: R2Bucket } }).env.STORE;
    const real = store.put;
    store.put = put as unknown as R2Bucket["put"];
    return () => {
      store.put = real;
    };
  });
  try {
    const long = "x".repeat(limits.inlineResultChars + 1);
    daemon.output(commandId, 0, long);
    daemon.result(commandId, long.length);
    expect(await daemon.next("result_ack")).toEqual({ t: "result_ack", commandId });
    const short = commandFor(daemon, newTask());
    await daemon.stub.submit(short);
    daemon.output(short.commandId, 0, "ok");
    daemon.result(short.commandId, 2);
    await vi.waitFor(() => expect(told.settled).toMatchObject([{ commandId: short.commandId }]));
    await vi.waitFor(() => expect(put).toHaveBeenCalled());
  } finally {
    restore();
  }
  await daemon.stub.poke();
  await vi.waitFor(() => expect(told.settled.map((settled) => settled.commandId)).toContain(commandId));
  expect(told.settled).toHaveLength(2);
});

test("[R13] [Q14] bytes that are no UTF-8 are kept, counted as they came, and never cut a character in half", async () => {
  const { daemon, told, commandId } = await running("bytes");
  const bytes = new Uint8Array([0xff, 0x80, 0x80, 0x80, 0x80, 0xe2, 0x82, 0xac, 0x41, 0xf0, 0x9f]);
  for (let at = 0; at < bytes.length; at++) daemon.output(commandId, at, bytes.subarray(at, at + 1));
  daemon.result(commandId, bytes.length);
  await vi.waitFor(() => expect(told.settled).toHaveLength(1));
  const text = new TextDecoder().decode(bytes);
  expect(told.settled[0]?.output).toEqual({ text, spilled: false });
  let read = "";
  for (let offset = 0, done = false; !done; ) {
    const part = await daemon.stub.readOutput({ commandId, offset, limit: 1 });
    if (!part) throw new Error("no output");
    expect(part.offset).toBeGreaterThan(offset);
    read += part.text;
    ({ offset, done } = part);
  }
  expect(read.replaceAll("\ufffd", "")).toBe("€A");
  expect(await daemon.stub.readOutput({ commandId: "cmd_a-0", offset: 0, limit: 1 })).toBeNull();
});

test("more output than a command may have breaks the protocol", async () => {
  const { daemon, commandId } = await running("too-much");
  await runInDurableObject(stubOf(daemon), (_, state) => {
    const bytes = limits.maxCommandOutputBytes + limits.maxOutputChunkBytes;
    state.storage.sql.exec("UPDATE command SET stored_bytes = ? WHERE id = ?", bytes, commandId);
  });
  daemon.output(commandId, limits.maxCommandOutputBytes + limits.maxOutputChunkBytes, "x");
  expect(await daemon.closing()).toEqual({ code: 4400, reason: "protocol error: data: is more output than a command may have" });
});

test("a cut is moved back to the start of the character that it would halve", () => {
  const bytes = new TextEncoder().encode("a€🎉b");
  expect(Array.from({ length: bytes.length + 1 }, (_, at) => boundary(bytes, at))).toEqual([0, 1, 1, 1, 4, 4, 4, 4, 8, 9]);
});

test("a settled command is forgotten after eight days, unless it could still be submitted; its late result is acknowledged", async () => {
  const { daemon, told, commandId } = await running("forget");
  const longLived = commandFor(daemon, newTask(), { notAfterMs: Date.now() + 30 * 86_400_000 });
  await daemon.stub.submit(longLived);
  daemon.result(longLived.commandId, 0);
  daemon.output(commandId, 0, "abc");
  daemon.result(commandId, 3);
  await vi.waitFor(() => expect(told.settled).toHaveLength(2));
  await vi.waitFor(async () => expect(await owed(daemon)).toEqual([]));
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.dedupeMs + 60_000 });
  await daemon.connect();
  const later = commandFor(daemon, newTask());
  await daemon.stub.submit(later);
  daemon.result(later.commandId, 0);
  await vi.waitFor(() => expect(told.settled).toHaveLength(3));
  expect(await daemon.stub.readOutput({ commandId: longLived.commandId, offset: 0, limit: 10 })).not.toBeNull();
  expect(await daemon.stub.readOutput({ commandId, offset: 0, limit: 10 })).toBeNull();
  daemon.takeAll();
  daemon.output(commandId, 0, "abc");
  daemon.result(commandId, 3);
  expect(await daemon.next("result_ack")).toEqual({ t: "result_ack", commandId });
  expect(told.settled).toHaveLength(3);
});

const owed = (daemon: TestDaemon): Promise<unknown[]> =>
  runInDurableObject(stubOf(daemon), (_, state) => state.storage.sql.exec("SELECT id FROM effect WHERE id LIKE 'settle:%'").toArray());
