// The Worker as it ships, with everything counted that the platform bills. The numbers are the platform's own: a cursor's rows, the
// `meta` of an answer of D1. `GET /bench/counts` hands them out and begins anew.

import type { Env } from "../../../src/env.ts";
import * as shipped from "../../../src/index.ts";
import { type Counts, countsPath, noCounts, noObjectCounts, type ObjectCounts } from "./counts.ts";

let counts: Counts = noCounts();
const kinds = new WeakMap<object, string>();
/** Cursors that may still move on, and whose they are. */
let cursors: { of: string; cursor: SqlStorageCursor<Record<string, SqlStorageValue>> }[] = [];

function countsOf(kind: string): ObjectCounts {
  counts.objects[kind] ??= noObjectCounts();
  return counts.objects[kind];
}

function addCursors(): void {
  for (const { of, cursor } of cursors) {
    countsOf(of).rowsRead += cursor.rowsRead;
    countsOf(of).rowsWritten += cursor.rowsWritten;
  }
  cursors = [];
}

const patched = new WeakSet<object>();

/** Replaces a method of a class of the platform, once, by one that also counts. */
function counting<T extends object, K extends keyof T & string>(
  target: T,
  method: K,
  count: (self: T, result: unknown, given: unknown[]) => void,
): void {
  const original = target[method] as (...given: unknown[]) => unknown;
  target[method] = function (this: T, ...given: unknown[]) {
    const result = original.apply(this, given);
    count(this, result, given);
    return result;
  } as T[K];
}

/** What each object's alarm is set to, also while the object is put away. */
const waiting = new Map<string, Counts["waiting"][number]>();
const objectIds = new WeakMap<object, string>();

const prototypeOf = <T extends object>(value: T): T => Object.getPrototypeOf(value) as T;

function countStorage({ storage, id }: DurableObjectState, kind: string): void {
  kinds.set(storage, kind);
  objectIds.set(storage, id.toString());
  kinds.set(storage.sql, kind);
  kinds.set(storage.kv, kind);
  const prototype = prototypeOf(storage);
  if (patched.has(prototype)) return;
  patched.add(prototype);
  counting(prototypeOf(storage.sql), "exec", (sql, cursor) => {
    cursors.push({ of: kinds.get(sql) ?? "unknown", cursor: cursor as SqlStorageCursor<Record<string, SqlStorageValue>> });
    if (cursors.length > 20_000) addCursors();
  });
  counting(prototypeOf(storage.kv), "put", (kv) => {
    countsOf(kinds.get(kv) ?? "unknown").rowsWritten += 1;
  });
  for (const method of ["setAlarm", "deleteAlarm"] as const)
    counting(prototype, method, (self, _, [atMs]) => {
      const kind = kinds.get(self) ?? "unknown";
      countsOf(kind).alarmsSet += 1;
      const object = objectIds.get(self) ?? "unknown";
      if (method === "setAlarm") waiting.set(object, { kind, afterMs: Number(atMs) - Date.now() });
      else waiting.delete(object);
    });
}

type D1Answer = { meta?: { rows_read?: number; rows_written?: number } };

type Wired = { fetcher?: Fetcher };

/** The wire of D1 has each statement's `meta`, also for those whose caller sees only rows. */
function countDatabase(db: D1Database & { alwaysPrimarySession?: Wired }): void {
  const session = db.alwaysPrimarySession;
  const wire = session?.fetcher;
  if (session === undefined || wire === undefined) throw new Error("the binding of D1 has another shape: it cannot be counted");
  if (patched.has(db)) return;
  patched.add(db);
  const fetch: Fetcher["fetch"] = async (...given) => {
    const response = await wire.fetch(...given);
    const answers = (await response.clone().json()) as D1Answer | D1Answer[];
    for (const { meta } of [answers].flat()) {
      counts.d1.queries += 1;
      counts.d1.rowsRead += meta?.rows_read ?? 0;
      counts.d1.rowsWritten += meta?.rows_written ?? 0;
    }
    return response;
  };
  session.fetcher = { fetch } as Fetcher;
}

function countBucket(bucket: R2Bucket): void {
  const prototype = prototypeOf(bucket);
  if (patched.has(prototype)) return;
  patched.add(prototype);
  for (const method of ["put", "list", "createMultipartUpload"] as const)
    counting(prototype, method, () => {
      counts.r2.writes += 1;
    });
  for (const method of ["get", "head"] as const)
    counting(prototype, method, () => {
      counts.r2.reads += 1;
    });
}

function countEnv(env: Env): void {
  countDatabase(env.DB);
  countBucket(env.STORE);
}

const underWay = new WeakMap<object, { calls: number; sinceMs: number }>();

/** An object is billed once for the time in which anything of it is under way. */
function timed(self: object, kind: string, result: unknown): unknown {
  if (!(result instanceof Promise)) return result;
  const its = underWay.get(self) ?? { calls: 0, sinceMs: 0 };
  underWay.set(self, its);
  if (its.calls === 0) its.sinceMs = Date.now();
  its.calls += 1;
  const ended = (): void => {
    its.calls -= 1;
    if (its.calls === 0) countsOf(kind).activeMs += Date.now() - its.sinceMs;
  };
  result.then(ended, ended);
  return result;
}

type Class = new (ctx: DurableObjectState, env: Env) => object;

/** The class with its calls counted. */
function counted<C extends Class>(base: C): C {
  const kind = base.name;
  class Counted extends (base as Class) {
    constructor(ctx: DurableObjectState, env: Env) {
      countEnv(env);
      countStorage(ctx, kind);
      countsOf(kind).constructed += 1;
      super(ctx, env);
    }
  }
  for (let level = base.prototype as object; level !== null && level !== Object.prototype; level = Object.getPrototypeOf(level) as object)
    for (const name of Object.getOwnPropertyNames(level)) {
      const method = Object.getOwnPropertyDescriptor(level, name)?.value as unknown;
      if (name === "constructor" || typeof method !== "function" || Object.hasOwn(Counted.prototype, name)) continue;
      Object.defineProperty(Counted.prototype, name, {
        configurable: true,
        writable: true,
        value(this: object, ...given: unknown[]): unknown {
          const its = countsOf(kind);
          if (name === "alarm") {
            its.alarmsRun += 1;
            waiting.delete((this as { ctx: DurableObjectState }).ctx.id.toString());
          } else if (name === "webSocketMessage") its.socketMessages += 1;
          else its.calls[name] = (its.calls[name] ?? 0) + 1;
          return timed(this, kind, (method as (...all: unknown[]) => unknown).apply(this, given));
        },
      });
    }
  return Counted as unknown as C;
}

export const Board = counted(shipped.Board);
export const Endpoint = counted(shipped.Endpoint);
export const Router = counted(shipped.Router);
export const Thread = counted(shipped.Thread);
export const WorkerSession = counted(shipped.WorkerSession);

export default {
  async fetch(request, env, ctx) {
    countEnv(env);
    if (new URL(request.url).pathname === countsPath) {
      addCursors();
      const taken = { ...counts, waiting: [...waiting.values()] };
      counts = noCounts();
      return Response.json(taken);
    }
    counts.requests += 1;
    return shipped.default.fetch(request, env, ctx);
  },
  scheduled: shipped.default.scheduled,
} satisfies ExportedHandler<Env>;
