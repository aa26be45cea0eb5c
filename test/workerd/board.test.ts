import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Board } from "../../durable-objects/board.ts";
import type { Env } from "../../src/env.ts";
import type { BoardState } from "../../src/protocol/board.ts";

const { BOARD } = env as unknown as Env;
const stubOf = (name: string) => BOARD.getByName(name) as unknown as DurableObjectStub<Board>;

const card = (revision: number, status: "running" | "done" = "running") => ({
  taskId: "tsk_a",
  threadId: "thr_a",
  title: "Run the tests",
  status,
  line: "npm test",
  modelCalls: 1,
  startedMs: 1,
  updatedMs: revision,
  revision,
  source: "web",
  place: "widget",
  askedBy: "member",
});

async function follow(
  name: string,
): Promise<{ socket: WebSocket; states: BoardState[]; errors: unknown[]; until: (ok: () => boolean) => Promise<void> }> {
  const response = await stubOf(name).fetch(
    new Request("https://board.internal/socket", { headers: { upgrade: "websocket", "x-switchyard-session": "s1" } }),
  );
  const socket = response.webSocket;
  if (!socket) throw new Error(`no socket: ${response.status}`);
  const states: BoardState[] = [];
  const errors: unknown[] = [];
  const waiting: (() => void)[] = [];
  socket.addEventListener("message", (event) => {
    const frame = JSON.parse(String(event.data)) as { type: string; state: BoardState };
    if (frame.type === "cf_agent_state") states.push(frame.state);
    if (frame.type === "cf_agent_state_error") errors.push(frame);
    for (const wake of waiting.splice(0)) wake();
  });
  socket.accept();
  const until = async (ok: () => boolean) => {
    while (!ok()) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return { socket, states, errors, until };
}

test("a console gets the board when it connects, each change after it, and also after an eviction", async () => {
  const board = stubOf("follow");
  await board.change([{ kind: "task", task: card(1) }]);
  const console = await follow("follow");
  await console.until(() => console.states.length > 0);
  expect(console.states[0]?.tasks[0]?.revision).toBe(1);
  await evictDurableObject(board);
  await board.change([{ kind: "task", task: card(2, "done") }]);
  await console.until(() => console.states.at(-1)?.tasks[0]?.status === "done");
  expect(await board.snapshot()).toEqual(console.states.at(-1));
});

test("an older revision is not told to anybody", async () => {
  const board = stubOf("older");
  await board.change([{ kind: "task", task: card(5) }]);
  await evictDurableObject(board);
  await board.change([{ kind: "task", task: card(4, "done") }]);
  expect((await board.snapshot()).tasks[0]?.status).toBe("running");
});

test("a console cannot write the board's state", async () => {
  const board = stubOf("readonly");
  await board.change([{ kind: "task", task: card(1) }]);
  const console = await follow("readonly");
  await console.until(() => console.states.length > 0);
  console.socket.send(JSON.stringify({ type: "cf_agent_state", state: { tasks: [], endpoints: [], decisions: [], notices: [] } }));
  await console.until(() => console.errors.length > 0);
  expect((await board.snapshot()).tasks).toHaveLength(1);
});

test("a ticket is used once, also after an eviction, and an old one never", async () => {
  const board = stubOf("tickets");
  const ticket = { ticketId: "t1", sessionId: "s1", expiresMs: 1000, nowMs: 500 };
  expect(await board.redeem(ticket)).toBe(true);
  await evictDurableObject(board);
  expect(await board.redeem(ticket)).toBe(false);
  expect(await board.redeem({ ...ticket, ticketId: "t2", expiresMs: 400 })).toBe(false);
});

test("signing out closes the sockets of that session with its own code, also after an eviction", async () => {
  const expiresMs = Date.now() + 60_000;
  const board = stubOf("signout");
  const console = await follow("signout");
  await console.until(() => true);
  await evictDurableObject(board);
  const closed = new Promise<number>((resolve) => console.socket.addEventListener("close", (event) => resolve(event.code)));
  expect(await board.closeSession({ sessionId: "other", expiresMs })).toEqual({ closed: 0 });
  expect(await board.closeSession({ sessionId: "s1", expiresMs })).toEqual({ closed: 1 });
  expect(await closed).toBe(4403);
  await evictDurableObject(board);
  expect(await board.isSessionOpen({ sessionId: "s1" })).toBe(false);
  expect(await board.isSessionOpen({ sessionId: "s2" })).toBe(true);
  expect(await board.redeem({ ticketId: "late", sessionId: "s1", expiresMs, nowMs: Date.now() })).toBe(false);
});
