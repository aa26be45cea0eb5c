// The bytes of a request as the provider of a role would get them, without sending any.
import type { ModelConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";
import type { ModelRequest } from "../protocol/model.ts";
import { bodyText } from "./chat-request.ts";
import { createModel } from "./registry.ts";

const unusedTimeoutMs = 60_000;

/** `modelName` is the one that was asked at the time. */
export async function requestBytes(config: ModelConfig, modelName: string, request: ModelRequest): Promise<string> {
  let bytes: string | null = null;
  const baseUrl = config.baseUrl === "" ? "http://nowhere.invalid/v1" : config.baseUrl;
  const model = createModel({ ...config, baseUrl, modelName, problem: null }, async (_input, init) => {
    bytes = bodyText(init?.body);
    throw new Fault("unavailable", "Nothing is sent.");
  });
  try {
    await model.call(request, { timeoutMs: unusedTimeoutMs });
  } catch (error) {
    if (bytes === null) throw error;
  }
  if (bytes === null) throw new Fault("internal", "The provider's client made no request.");
  return bytes;
}
