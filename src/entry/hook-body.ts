// What the doors for webhooks share: the bytes as they came, their JSON, and a header that must be there.
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";
import { Fault } from "../protocol/fault.ts";

/** The bytes as they came: the signature is over them, not over what we understand of them. */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = (): Fault => new Fault("too_large", `The body is larger than ${maxBytes} bytes, more than this door takes.`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  if (!request.body) return new Uint8Array();
  // Whoever says how long the body is cannot send more: then it is read at once.
  if (request.headers.has("content-length")) {
    const whole = new Uint8Array(await request.arrayBuffer());
    if (whole.length > maxBytes) throw tooLarge();
    return whole;
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    size += chunk.byteLength;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Uint8Array, contentType: string | undefined): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch (error) {
    const hint = contentType?.includes("x-www-form-urlencoded") ? " Set the webhook's content type to application/json." : "";
    throw new Fault("bad_input", `The body is not JSON.${hint}`, { cause: error });
  }
}

/** Work that goes on after the answer, if there is some. */
export function afterwards(c: Context<AppEnv>, work: Promise<void> | null): void {
  if (work !== null) c.executionCtx.waitUntil(work);
}

/** A header that every delivery has; `whose` names the sender in the sentence for one that has not. */
export function headerOf(c: Context<AppEnv>, name: string, maxChars: number, whose: string): string {
  const value = c.req.header(name)?.trim() ?? "";
  if (value === "" || value.length > maxChars)
    throw new Fault("bad_input", `The header ${name} is ${value === "" ? "missing" : "too long"}: this is not a delivery of ${whose}.`);
  return value;
}
