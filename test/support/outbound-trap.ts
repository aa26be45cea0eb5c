// Outbound network of the workerd tests is trapped: known stand-ins answer, an unknown host throws.
import { handleGeneric } from "./generic-server.ts";
import { handleGitHub } from "./github-server.ts";
import { handleModel } from "./model-server.ts";

/** Stand-ins by host; each speaks the real wire protocol and is scripted by the test through its `/control` paths. */
const standIns: Record<string, (request: Request) => Promise<Response>> = {
  "model.test": handleModel,
  "github.test": handleGitHub,
  "generic.test": handleGeneric,
};

export async function outboundTrap(request: {
  url: string;
  method: string;
  headers: Iterable<[string, string]>;
  text(): Promise<string>;
}): Promise<never> {
  const url = new URL(request.url);
  const standIn = standIns[url.hostname];
  if (!standIn) throw new Error(`A test tried to reach ${url.hostname}: outbound network is trapped.`);
  const body = request.method === "GET" || request.method === "HEAD" ? null : await request.text();
  return (await standIn(new Request(request.url, { method: request.method, headers: [...request.headers], body }))) as never;
}
