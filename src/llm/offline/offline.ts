// The embedded provider: the ordinary client, whose requests are answered by the planner instead of a server. No side channel.
import type { ModelConfig } from "../../env.ts";
import type { Model } from "../../protocol/model.ts";
import { completionEvents, eventStream, readCompletion } from "../chat-events.ts";
import { bodyText } from "../chat-request.ts";
import { openAiCompatible } from "../openai-compatible.ts";
import { answerChat } from "./planner.ts";

/** About a few words: what is drawn of a reply grows the way a written one does. */
const pieceChars = 24;

const plan: typeof fetch = async (_input, init) => {
  const completion = readCompletion(answerChat(bodyText(init?.body)));
  if (completion === null) throw new TypeError("The offline model wrote no chat completion.");
  return eventStream(completionEvents(completion, pieceChars));
};

/** A deterministic model that needs no account, no key and no network. */
export const offline = (config: ModelConfig, answer: typeof fetch = plan): Model => openAiCompatible(config, answer);
