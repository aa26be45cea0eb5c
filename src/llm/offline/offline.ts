// The embedded provider: the ordinary client, whose requests are answered by the planner instead of a server. No side channel.
import type { ModelConfig } from "../../env.ts";
import type { Model } from "../../protocol/model.ts";
import { openAiCompatible } from "../openai-compatible.ts";
import { answerChat } from "./planner.ts";

/** A deterministic model that needs no account, no key and no network. */
export const offline = (config: ModelConfig): Model =>
  openAiCompatible(config, async (_input, init) => {
    const body = init?.body;
    if (typeof body !== "string") throw new TypeError("The offline model reads JSON text only.");
    return new Response(answerChat(body), { headers: { "content-type": "application/json" } });
  });
