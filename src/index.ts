// The Worker itself: its doors and its objects.
export { Board } from "../durable-objects/board.ts";
export { Endpoint } from "../durable-objects/endpoint.ts";
export { Router } from "../durable-objects/router.ts";
export { Thread } from "../durable-objects/thread.ts";
export { WorkerSession } from "../durable-objects/worker-session.ts";

import { app } from "./entry/app.ts";
import { onCron } from "./entry/cron.ts";
import type { Env } from "./env.ts";

export default {
  fetch: app.fetch,
  scheduled: (_controller, env) => onCron(env, Date.now()),
} satisfies ExportedHandler<Env>;
