import { DurableObject } from "cloudflare:workers";
import type { Env } from "../src/env.ts";

export class Board extends DurableObject<Env> {}
