// The offline model: a request's bytes in, an answer's bytes out. Which mind asks is seen by the tools that it offers.
import { readChat, writeAnswer } from "./chat.ts";
import { planRouter } from "./router-plan.ts";
import { planWorker } from "./worker-plan.ts";

/** Answers one chat completion. Deterministic: no clock, no randomness, nothing but the request. */
export function answerChat(body: string): string {
  const chat = readChat(body);
  if (chat.tools.has("dispatch")) return writeAnswer(chat, planRouter(chat));
  if (chat.tools.has("run_command")) return writeAnswer(chat, planWorker(chat));
  return writeAnswer(chat, {
    text: "I am the offline model. I plan for the router and for workers, and was offered the tools of neither.",
  });
}
