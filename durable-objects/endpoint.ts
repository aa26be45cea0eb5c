import { DurableObject } from "cloudflare:workers";
import type { Env } from "../src/env.ts";

export class Endpoint extends DurableObject<Env> {}
