import { DurableObject } from "cloudflare:workers";
import type { Env } from "../src/env.ts";

export class Thread extends DurableObject<Env> {}
