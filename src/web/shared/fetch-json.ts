// Calls to our own doors. An answer that is not a success becomes an error with the door's own sentence.

export class DoorError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const sentenceOf = async (response: Response): Promise<string> => {
  const body: unknown = await response.json().catch(() => null);
  return typeof body === "object" && body !== null && "message" in body && typeof body.message === "string"
    ? body.message
    : `The server answered ${response.status}.`;
};

/** A JSON call. Throws `DoorError`: status 0 when there was no answer at all. */
export async function fetchJson<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
  } catch {
    throw new DoorError(0, "The server cannot be reached at the moment.");
  }
  if (!response.ok) throw new DoorError(response.status, await sentenceOf(response));
  return (await response.json()) as T;
}
