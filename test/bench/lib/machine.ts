// A machine as the cloud sees one: enrolled with a key, dialled in, and from then on only its pings.
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import WebSocket from "ws";
import { type CloudFrame, daemonProtocolVersion, helloText } from "../../../src/protocol/daemon-frames.ts";
import type { Deployment } from "./deployment.ts";

/** What precedes the 32 raw bytes of an Ed25519 key in its DER form. */
const derHeadBytes = 12;

export class Machine {
  readonly endpointId: string;
  pings = 0;
  readonly #key: KeyObject;
  #socket: WebSocket | null = null;
  #pinger: NodeJS.Timeout | undefined;

  private constructor(endpointId: string, key: KeyObject) {
    this.endpointId = endpointId;
    this.#key = key;
  }

  static async enrol(deployment: Deployment, name: string): Promise<Machine> {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ type: "spki", format: "der" }).subarray(derHeadBytes).toString("base64");
    const code = await deployment.console.enrolmentCode();
    const body = JSON.stringify({ code, name, publicKey: raw, platform: "linux" });
    const answer = await deployment.post("/api/daemon/enrol", body, { "content-type": "application/json" });
    if (answer.status !== 200) throw new Error(`an enrolment was answered ${answer.status}: ${answer.body.slice(0, 200)}`);
    return new Machine((JSON.parse(answer.body) as { endpointId: string }).endpointId, privateKey);
  }

  /** Resolves when the cloud has welcomed it. */
  async connect(origin: string): Promise<void> {
    const { host } = new URL(origin);
    const socket = new WebSocket(`${origin.replace(/^http/, "ws")}/api/daemon/connect?endpoint=${this.endpointId}`);
    this.#socket = socket;
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.once("close", (code, reason) => reject(new Error(`a machine's socket was closed: ${code} ${String(reason)}`)));
      socket.on("message", (data) => {
        const text = String(data);
        if (text === "pong") return;
        const frame = JSON.parse(text) as CloudFrame;
        if (frame.t === "challenge") socket.send(JSON.stringify(this.#hello(frame.nonce, host)));
        if (frame.t === "welcome") {
          this.#pinger = setInterval(() => {
            this.pings += 1;
            socket.send("ping");
          }, frame.pingMs);
          resolve();
        }
      });
    });
  }

  #hello(nonce: string, host: string): object {
    const signature = sign(null, Buffer.from(helloText(daemonProtocolVersion, this.endpointId, nonce, host)), this.#key).toString("base64");
    const about = { version: "bench", platform: "linux", sandbox: "bwrap" };
    return { t: "hello", v: daemonProtocolVersion, endpointId: this.endpointId, signature, about, workspaces: [], open: [] };
  }

  close(): void {
    clearInterval(this.#pinger);
    this.#socket?.removeAllListeners("close");
    this.#socket?.close();
  }
}
