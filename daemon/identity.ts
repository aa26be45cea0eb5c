// Who this machine is: an Ed25519 key that was made here and never leaves, and the endpoint that the cloud knows it as.
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { mkdirSync, renameSync } from "node:fs";
import { basename, join } from "node:path";
import * as z from "zod/mini";
import { isRecord } from "../src/core/json.ts";
import { daemonProtocolVersion, enrolRequest, enrolResponse, helloText } from "../src/protocol/daemon-frames.ts";
import { Fault } from "../src/protocol/fault.ts";
import { endpointId } from "../src/protocol/ids.ts";
import { type Home, isErrno, readIfThere, writeWhole } from "./home.ts";

const stored = z.object({ endpointId, name: z.string(), url: z.string(), privateKey: z.string() });

export type Identity = { endpointId: string; name: string; url: string; key: KeyObject };

/** The enrolled identity, or null before the first enrolment. */
export function readIdentity(home: Home): Identity | null {
  const text = readIfThere(home.identity);
  if (text === null) return null;
  try {
    const { privateKey, ...rest } = stored.parse(JSON.parse(text));
    return { ...rest, key: createPrivateKey(privateKey) };
  } catch (cause) {
    throw new Fault("bad_input", `${home.identity} cannot be read; enrol this machine again with: npm run daemon -- enroll URL CODE`, {
      cause,
    });
  }
}

/** The cloud's address: https, or http on this machine only, since the enrolment code travels on it. */
export function cloudAddress(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new Fault("bad_input", `"${text}" is not an address; give the one of your deployment, like https://switchyard.example.com`);
  const url = new URL(text);
  if (url.protocol === "http:" && !["localhost", "127.0.0.1", "[::1]"].includes(url.hostname))
    throw new Fault("bad_input", `Use https for ${url.hostname}; http is only for this machine itself.`);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "")
    throw new Fault("bad_input", `Give only the address of the deployment: ${url.origin}`);
  return url.origin;
}

const whatToDo: Record<number, string> = {
  400: "The cloud did not accept the enrolment",
  401: "That code is wrong, used, or older than ten minutes; make a new one in the console and run enroll again.",
  403: "That code is wrong, used, or older than ten minutes; make a new one in the console and run enroll again.",
  404: "That code is wrong, used, or older than ten minutes, or the address is not the one of a Switchyard; check both and run enroll again.",
  410: "That code is used, or older than ten minutes; make a new one in the console and run enroll again.",
  429: "Too many attempts; wait a minute and run enroll again.",
};

/** What the cloud says in its answer. */
const saidIn = (body: unknown): string | null => (isRecord(body) && typeof body.message === "string" ? body.message : null);

/** Makes a key, trades the code for an endpoint, and keeps both. What an earlier enrolment left is moved aside. */
export async function enrol(home: Home, address: string, code: string, name: string): Promise<Identity> {
  const url = cloudAddress(address);
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  const body = { code, name, publicKey: raw.toString("base64"), platform: `${process.platform} ${process.arch}` };
  const checked = enrolRequest.safeParse(body);
  if (!checked.success) {
    const field = String(checked.error.issues[0]?.path[0] ?? "code");
    throw new Fault("bad_input", field === "name" ? `The name ${checked.error.issues[0]?.message}.` : "That is not an enrolment code.");
  }
  let response: Response;
  try {
    response = await fetch(`${url}/api/daemon/enrol`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(20_000),
      redirect: "error",
    });
  } catch (cause) {
    throw new Fault("unavailable", `${url} cannot be reached; check the address and that it is running, then run enroll again.`, { cause });
  }
  const answer: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const said = saidIn(answer);
    const hint = whatToDo[response.status] ?? `${url} answered ${response.status}; try again in a minute.`;
    throw new Fault("unauthorised", response.status === 400 ? `${hint}: ${said ?? "it gave no reason"}` : hint);
  }
  const given = enrolResponse.safeParse(answer);
  if (!given.success) throw new Fault("provider", `${url} is not a Switchyard of this version; check the address.`);
  setAside(home);
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  writeWhole(home.identity, `${JSON.stringify({ ...given.data, url, privateKey: pem }, null, 2)}\n`);
  return { ...given.data, url, key: privateKey };
}

/** The journal belongs to an endpoint: the next one starts an empty one, and nothing old is ever sent to it. */
function setAside(home: Home): void {
  const target = join(home.old, String(Date.now()));
  for (const path of [home.identity, home.journal, home.output, home.status]) {
    try {
      mkdirSync(target, { recursive: true, mode: 0o700 });
      renameSync(path, join(target, basename(path)));
    } catch (error) {
      if (!isErrno(error, "ENOENT")) throw error;
    }
  }
}

/** Signs the cloud's challenge: bound to the nonce, this endpoint and the host that was dialled. */
export const signHello = (identity: Identity, nonce: string): string =>
  sign(
    null,
    Buffer.from(helloText(daemonProtocolVersion, identity.endpointId, nonce, new URL(identity.url).host), "utf8"),
    identity.key,
  ).toString("base64");
