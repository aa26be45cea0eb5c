// The pages: static files with the policies that keep them from being anything else.
import { type Context, Hono } from "hono";
import { type AppEnv, readConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";

type Door = Context<AppEnv>;

/** No inline script, no foreign script, no text that becomes HTML (trusted types allow no policy at all). */
const basePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

const policy = (...more: string[]): string => [...basePolicy, ...more].join("; ");

/** Origins that may frame the widget. What is not plainly an origin could end the directive and start another: it is left out. */
export const frameAncestors = (origins: readonly string[]): string =>
  ["'self'", ...origins.filter((origin) => /^(\*|https?:\/\/[a-z0-9.*:[\]-]+)$/i.test(origin))].join(" ");

const common: Record<string, string> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "cache-control": "no-cache",
};

async function page(c: Door, path: string, headers: Record<string, string>): Promise<Response> {
  if (!c.env.ASSETS) throw new Fault("unavailable", "The browser parts are not built. Run `npm run build`, then start again.");
  const ifNoneMatch = c.req.header("if-none-match");
  const asset = await c.env.ASSETS.fetch(
    new Request(new URL(path, c.req.url), {
      method: c.req.method,
      headers: ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch },
    }),
  );
  if (asset.status === 404) throw new Fault("not_found", `There is nothing at ${c.req.path}.`);
  const response = new Response(asset.body, asset);
  for (const [name, value] of Object.entries({ ...common, ...headers })) response.headers.set(name, value);
  return response;
}

/** Widget and loader are made to be shown by other origins; everything else is for our own. */
const open = { "cross-origin-resource-policy": "cross-origin" };
const closed = { "cross-origin-resource-policy": "same-origin" };
const unframed = { ...closed, "x-frame-options": "DENY", "cross-origin-opener-policy": "same-origin" };

export const pagesDoor = new Hono<AppEnv>();

pagesDoor.get("/", (c) => c.redirect("/demo", 302));

pagesDoor.get("/demo", (c) =>
  page(c, "/demo/", { ...unframed, "content-security-policy": policy("frame-src 'self'", "frame-ancestors 'none'") }),
);

pagesDoor.get("/console", (c) => page(c, "/console/", { ...unframed, "content-security-policy": policy("frame-ancestors 'none'") }));

pagesDoor.get("/widget", (c) => c.redirect("/widget/", 302));

pagesDoor.get("/widget/", (c) => {
  const ancestors = frameAncestors(readConfig(c.env).widgetOrigins);
  return page(c, "/widget/", { ...open, "content-security-policy": policy(`frame-ancestors ${ancestors}`) });
});

for (const path of ["/widget.js", "/widget/app.js", "/widget/app.css"]) pagesDoor.get(path, (c) => page(c, path, open));
for (const path of ["/console/app.js", "/console/app.css", "/demo/demo.css", "/icon.svg"])
  pagesDoor.get(path, (c) => page(c, path, closed));
