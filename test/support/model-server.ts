// A stand-in of an OpenAI-compatible model server. Filled by its own commit.
export async function handleModel(_request: Request): Promise<Response> {
  return new Response("not scripted", { status: 500 });
}
