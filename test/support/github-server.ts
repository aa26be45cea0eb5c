// A stand-in of GitHub's REST API. Filled by its own commit.
export async function handleGitHub(_request: Request): Promise<Response> {
  return new Response("not scripted", { status: 500 });
}
