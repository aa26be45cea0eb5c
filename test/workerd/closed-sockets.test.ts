// A close is a request: peers that keep the connection open are not heard any more. Frames go straight to the object's handler,
// as they do when a client of somebody's own does not answer the close.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { Endpoint } from "../../durable-objects/endpoint.ts";
import { Thread } from "../../durable-objects/thread.ts";
import { commandFor, newTask, TestDaemon } from "./test-daemon.ts";
import { eventsOf, stubOf, uniqueName } from "./thread-fixtures.ts";
import { invite, Page, session } from "./widget-page.ts";

const send = (threadId: string, clientMsgId: string): string => JSON.stringify({ t: "send", clientMsgId, threadId, text: "run `id`" });

/** The object's own end of its only socket, and its handler. */
function inThread<T>(threadId: string, work: (thread: Thread, ws: WebSocket) => Promise<T>): Promise<T> {
  return runInDurableObject(stubOf(threadId) as unknown as DurableObjectStub, async (instance, state) => {
    const [ws] = state.getWebSockets();
    if (!(instance instanceof Thread) || !ws) throw new Error("no socket");
    return work(instance, ws);
  });
}

test("[T7] whoever was revoked says nothing more on a socket that they keep open, also of what was on its way", async () => {
  const { token, personId } = await invite(uniqueName());
  const { rootThreadId } = await Page.ready(await session(token));
  await inThread(rootThreadId, async (thread, ws) => {
    const onItsWay = thread.webSocketMessage(ws, send(rootThreadId, "on-its-way"));
    await thread.revoke({ principalId: personId });
    await onItsWay;
    await thread.webSocketMessage(ws, send(rootThreadId, "after-the-close"));
    await thread.webSocketMessage(
      ws,
      JSON.stringify({ t: "act", clientMsgId: "act-after-it", threadId: rootThreadId, taskId: "tsk_aaaaaaaaaaaaaa", action: "stop" }),
    );
  });
  expect(await eventsOf(rootThreadId, "thread.accepted")).toEqual([]);
  await evictDurableObject(stubOf(rootThreadId) as unknown as DurableObjectStub);
  expect(await eventsOf(rootThreadId, "thread.accepted")).toEqual([]);
});

test("[T7] a page that broke the protocol is not heard after the close, nor brought back by the end of its catch-up", async () => {
  const { rootThreadId } = await Page.ready(await session());
  await inThread(rootThreadId, async (thread, ws) => {
    await thread.webSocketMessage(ws, "{");
    await thread.webSocketMessage(ws, JSON.stringify({ t: "hello", resume: {} }));
    await thread.webSocketMessage(ws, send(rootThreadId, "after-the-close"));
  });
  expect(await eventsOf(rootThreadId, "thread.accepted")).toEqual([]);
});

test.each([
  ["revoked", (endpoint: Endpoint) => endpoint.revoke({ by: "owner" })],
  ["broke the protocol", (endpoint: Endpoint, ws: WebSocket) => endpoint.webSocketMessage(ws, "{")],
])("[E10] what a machine that %s still says on its old connection changes nothing", async (_why, end) => {
  const daemon = await TestDaemon.enrol("closed");
  await daemon.connect();
  const command = commandFor(daemon, newTask());
  await daemon.stub.submit(command);
  await runInDurableObject(daemon.stub as unknown as DurableObjectStub, async (instance, state) => {
    const [ws] = state.getWebSockets();
    if (!(instance instanceof Endpoint) || !ws) throw new Error("no socket");
    await end(instance, ws);
    await instance.webSocketMessage(ws, JSON.stringify({ t: "started", commandId: command.commandId, atMs: 1 }));
  });
  const events = await daemon.stub.events({ afterSeq: 0, limit: 100 });
  expect(events.filter(({ event }) => event.kind === "endpoint.command" && event.state === "started")).toEqual([]);
});
