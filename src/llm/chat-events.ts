// A chat completion as the server-sent events of a stream: for servers that answer whole, and for models that have no server.
import { isRecord, recordIn } from "../core/json.ts";

type Completion = { choices: { message: Record<string, unknown>; finish_reason: unknown }[] } & Record<string, unknown>;

/** The completion in a text; null when it is none, or says nothing. */
export function readCompletion(text: string): Completion | null {
  const value = recordIn(text);
  const first: unknown = Array.isArray(value?.choices) ? value.choices[0] : null;
  return isRecord(first) && isRecord(first.message) ? (value as Completion) : null;
}

/** The same answer as events; words and arguments in pieces of at most `pieceChars`. */
export function completionEvents(completion: Completion, pieceChars = Number.POSITIVE_INFINITY): string {
  const { choices, usage, ...head } = completion;
  const chunk = (delta: object, finish: unknown = null): object => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const { message, finish_reason } = choices[0] ?? { message: {}, finish_reason: null };
  const { content, tool_calls, ...rest } = message;
  const chunks: object[] = [chunk(rest)];
  for (const piece of typeof content === "string" ? inPieces(content, pieceChars) : content ? [content] : [])
    chunks.push(chunk({ content: piece }));
  (Array.isArray(tool_calls) ? tool_calls.filter(isRecord) : []).forEach((call, index) => {
    const made = isRecord(call.function) ? call.function : {};
    const args = typeof made.arguments === "string" ? made.arguments : JSON.stringify(made.arguments ?? {});
    inPieces(args, pieceChars).forEach((piece, at) => {
      const delta = at === 0 ? { ...call, index, function: { ...made, arguments: piece } } : { index, function: { arguments: piece } };
      chunks.push(chunk({ tool_calls: [delta] }));
    });
  });
  chunks.push({ ...chunk({}, finish_reason ?? "stop"), ...(usage === undefined ? {} : { usage }) });
  return `${chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("")}data: [DONE]\n\n`;
}

function inPieces(text: string, chars: number): string[] {
  if (text.length <= chars) return [text];
  // By code points: half an emoji is no text.
  const points = Array.from(text);
  return Array.from({ length: Math.ceil(points.length / chars) }, (_, i) => points.slice(i * chars, (i + 1) * chars).join(""));
}

export const eventStream = (events: string): Response => new Response(events, { headers: { "content-type": "text/event-stream" } });
