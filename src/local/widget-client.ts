// The widget's protocol from Node: the local start plays its first task as a person would, through the same doors.
import { randomBytes } from "node:crypto";
import WebSocket from "ws";
import { type WidgetServerFrame, widgetProtocol } from "../protocol/widget-frames.ts";
import { StartError } from "./settings.ts";

export class WidgetClient {
  readonly rootThreadId: string;
  readonly #socket: WebSocket;
  readonly #listeners = new Set<(frame: WidgetServerFrame) => void>();

  private constructor(rootThreadId: string, socket: WebSocket) {
    this.rootThreadId = rootThreadId;
    this.#socket = socket;
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data)) as WidgetServerFrame;
      for (const listener of this.#listeners) listener(frame);
    });
  }

  /** Opens the conversation of the person whose invite link this is. Rejects with a sentence when a door refuses. */
  static async connect(link: string): Promise<WidgetClient> {
    const { origin, hash } = new URL(link);
    const invite = new URLSearchParams(hash.slice(1)).get("invite");
    const call = async <T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> => {
      const response = await fetch(`${origin}/api/widget/${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", origin, ...headers },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`The widget's door /api/widget/${path} answered ${response.status}: ${text.slice(0, 300)}`);
      return JSON.parse(text) as T;
    };
    const { session } = await call<{ session: string }>("session", { invite, origin });
    const { ticket, rootThreadId } = await call<{ ticket: string; rootThreadId: string }>(
      "ticket",
      {},
      { authorization: `Bearer ${session}` },
    );
    const socket = new WebSocket(`${origin.replace(/^http/, "ws")}/api/widget/socket?thread=${rootThreadId}`, [widgetProtocol, ticket], {
      origin,
    });
    const client = new WidgetClient(rootThreadId, socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
      socket.once("close", (code, reason) => reject(new Error(`The widget's socket was closed: ${code} ${reason}`)));
    });
    socket.send(JSON.stringify({ t: "hello", resume: {} }));
    return client;
  }

  /** Calls `listener` with each frame until the returned function is called. */
  listen(listener: (frame: WidgetServerFrame) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the first frame for which `pick` gives a value; rejects after `timeoutMs`, or when the socket closes. */
  until<T>(pick: (frame: WidgetServerFrame) => T | undefined, timeoutMs: number, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = () => {
        stop();
        clearTimeout(timer);
        this.#socket.off("close", closed);
      };
      const stop = this.listen((frame) => {
        const value = pick(frame);
        if (value === undefined) return;
        done();
        resolve(value);
      });
      const closed = (code: number, reason: Buffer) => {
        done();
        reject(new StartError(`The conversation closed (${code} ${reason}) before ${what}.`));
      };
      const timer = setTimeout(() => {
        done();
        reject(new StartError(`There was no ${what} within ${Math.round(timeoutMs / 1000)} s.`));
      }, timeoutMs);
      this.#socket.on("close", closed);
    });
  }

  /** Sends a message into a thread and returns its client id; the same id sent again is the same message. */
  send(text: string, threadId: string = this.rootThreadId, clientMsgId: string = randomBytes(12).toString("base64url")): string {
    this.#socket.send(JSON.stringify({ t: "send", clientMsgId, threadId, text }));
    return clientMsgId;
  }

  act(action: "stop" | "continue" | "accept" | "reject", taskId: string, threadId: string): string {
    const clientMsgId = randomBytes(12).toString("base64url");
    this.#socket.send(JSON.stringify({ t: "act", clientMsgId, taskId, threadId, action }));
    return clientMsgId;
  }

  close(): void {
    this.#socket.close();
  }
}
