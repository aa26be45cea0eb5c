// A person whose access was withdrawn, with a client of their own that does not answer the close of its socket.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { widgetProtocol } from "../../src/protocol/widget-frames.ts";
import { eventually, operatorToken, System } from "../support/system.ts";

let system: System;
let workspace: string;
beforeAll(async () => {
  system = await System.start();
  workspace = path.join(system.folder, "workspace");
  mkdirSync(workspace);
  await system.daemon(workspace);
});
afterAll(() => system.stop());

const post = async <T>(at: string, body: unknown, headers: Record<string, string> = {}): Promise<T> => {
  const response = await fetch(`${system.origin}/api/${at}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return (await response.json()) as T;
};

/** One masked text frame, as a browser would send it. */
function frame(value: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(value));
  const mask = randomBytes(4);
  const { length } = payload;
  const head = length < 126 ? Buffer.from([0x81, 0x80 | length]) : Buffer.from([0x81, 0xfe, length >> 8, length & 255]);
  return Buffer.concat([head, mask, payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0))]);
}

function rawSocket(threadId: string, ticket: string): { socket: Socket; text: () => string } {
  const socket = connect(system.port, "127.0.0.1");
  let got = "";
  socket.on("data", (chunk) => {
    got += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  const lines = [
    `GET /api/widget/socket?thread=${threadId} HTTP/1.1`,
    `Host: 127.0.0.1:${system.port}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
    `Origin: ${system.origin}`,
    `Sec-WebSocket-Protocol: ${widgetProtocol}, ${ticket}`,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  return { socket, text: () => got };
}

test("[T7] whoever was revoked runs nothing more, also on a socket that they keep open", async () => {
  const operator = { authorization: `Bearer ${operatorToken}` };
  const person = await post<{ link: string; personId: string }>("console/people", { name: "Guest", role: "member" }, operator);
  const invite = new URLSearchParams(new URL(person.link).hash.slice(1)).get("invite");
  const own = { origin: system.origin };
  const { session } = await post<{ session: string }>("widget/session", { invite, origin: system.origin }, own);
  const bearer = { ...own, authorization: `Bearer ${session}` };
  const { ticket, rootThreadId } = await post<{ ticket: string; rootThreadId: string }>("widget/ticket", {}, bearer);
  const { socket, text } = rawSocket(rootThreadId, ticket);
  await eventually("upgrade", () => text().includes("101"));
  socket.write(frame({ t: "hello", resume: {} }));
  await eventually("end of the history", () => text().includes("caught_up"));

  expect(await post(`console/people/${person.personId}/revoke`, {}, operator)).toEqual({ ok: true, closed: 1 });
  socket.write(frame({ t: "send", clientMsgId: "after-revocation", threadId: rootThreadId, text: "run `touch revoked-was-here`" }));
  // What is asked later by somebody else is done: then the earlier message had its time.
  await system.sendSurely("run `touch fence`");
  await eventually("the later command", () => existsSync(path.join(workspace, "fence")));
  socket.destroy();
  expect(existsSync(path.join(workspace, "revoked-was-here"))).toBe(false);
  expect((await system.events("THREAD", rootThreadId)).filter(({ event }) => event.kind === "thread.accepted")).toEqual([]);
}, 60_000);
