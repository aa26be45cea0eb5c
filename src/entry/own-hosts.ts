// The names under which pages may speak to us. A page elsewhere can have its own name resolved to this machine: to a browser it is then
// same-origin with us, and only that name gives it away.
import type { MiddlewareHandler } from "hono";
import { type AppEnv, readConfig } from "../env.ts";
import { Fault } from "../protocol/fault.ts";

export const ownHosts: MiddlewareHandler<AppEnv> = async (c, next) => {
  const { allowedHosts } = readConfig(c.env);
  const { hostname } = new URL(c.req.url);
  if (allowedHosts.length > 0 && !allowedHosts.includes(hostname))
    throw new Fault(
      "forbidden",
      `Nobody is let in under the name ${hostname.slice(0, 100)}. The owner of this deployment names its hosts in ALLOWED_HOSTS.`,
    );
  await next();
};
