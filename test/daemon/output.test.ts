import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Link, Outbox } from "../../daemon/outbox.ts";
import { Spool } from "../../daemon/spool.ts";
import type { CommandResult } from "../../src/protocol/command.ts";
import type { DaemonFrame } from "../../src/protocol/daemon-frames.ts";
import { limits } from "../../src/protocol/limits.ts";
import { scratch } from "./scratch.ts";

describe("the spool", () => {
  test("keeps everything up to its limit, and beyond it exactly the first and the last half", () => {
    const dir = scratch();
    let serial = 0;
    void fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 70 }), { maxLength: 12 }), (sizes) => {
        const max = 100;
        const spool = new Spool(dir, `cmd_${serial++}`, max);
        const chunks = sizes.map((size) => randomBytes(size));
        for (const chunk of chunks) spool.append(chunk);
        const whole = Buffer.concat(chunks);
        const counted = spool.finish();
        const expected = whole.length <= max ? whole : Buffer.concat([whole.subarray(0, max / 2), whole.subarray(whole.length - max / 2)]);
        expect(counted).toEqual({ outputBytes: whole.length, truncatedBytes: whole.length - expected.length });
        expect(spool.read(0, 1000)).toEqual(expected);
        expect(spool.size).toBe(expected.length);
        spool.close();
      }),
    );
  });

  test("is there after a restart, and gone when it is discarded", () => {
    const dir = scratch();
    const first = new Spool(dir, "cmd_a");
    first.append(Buffer.from("hello"));
    first.close();
    const second = new Spool(dir, "cmd_a");
    expect(second.size).toBe(5);
    expect(second.read(1, 3).toString()).toBe("ell");
    expect(second.read(9, 3).length).toBe(0);
    second.discard();
    expect(readdirSync(dir)).toEqual([]);
  });
});

const result = (commandId: string, outputBytes: number): CommandResult => ({
  commandId,
  outcome: "exited",
  exitCode: 0,
  outputBytes,
  truncatedBytes: 0,
  startedMs: 0,
  endedMs: 0,
});

/** A connection that the test looks into. */
function makeLink(): Link & { frames: DaemonFrame[]; buffered: number } {
  const frames: DaemonFrame[] = [];
  const link = {
    frames,
    buffered: 0,
    send: (frame: DaemonFrame) => void frames.push(frame),
    bufferedBytes: () => link.buffered,
  };
  return link;
}

const offsets = (frames: DaemonFrame[]): number[] => frames.flatMap((frame) => (frame.t === "output" ? [frame.offset] : []));

describe("the outbox", () => {
  const chunk = limits.maxOutputChunkBytes;

  function filled(bytes: number) {
    const spool = new Spool(scratch(), "cmd_a");
    spool.append(Buffer.alloc(bytes, 65));
    const outbox = new Outbox(() => undefined);
    outbox.track("cmd_a", spool);
    return { spool, outbox };
  }

  test("sends output in chunks up to the window, and more as it is acknowledged", () => {
    const { outbox } = filled(3 * limits.outputWindowBytes);
    const link = makeLink();
    outbox.connected(link, []);
    const inWindow = limits.outputWindowBytes / chunk;
    expect(offsets(link.frames)).toEqual(Array.from({ length: inWindow }, (_, i) => i * chunk));
    outbox.acknowledged("cmd_a", chunk);
    outbox.acknowledged("cmd_a", chunk);
    expect(offsets(link.frames)).toHaveLength(inWindow + 1);
  });

  test("sends the result after the last output, and both again after a reconnect from the cloud's offset", () => {
    const { outbox } = filled(chunk + 10);
    const first = makeLink();
    outbox.connected(first, []);
    outbox.finish("cmd_a", result("cmd_a", chunk + 10));
    expect(first.frames.map((frame) => frame.t)).toEqual(["output", "output", "result"]);
    outbox.disconnected();
    const second = makeLink();
    outbox.connected(second, [{ commandId: "cmd_a", offset: chunk }]);
    expect(offsets(second.frames)).toEqual([chunk]);
    expect(second.frames.at(-1)?.t).toBe("result");
    outbox.forget("cmd_a");
    const third = makeLink();
    outbox.connected(third, []);
    expect(third.frames).toEqual([]);
    expect(outbox.idle).toBe(true);
  });

  test("never goes back behind what was acknowledged, nor beyond what is here", () => {
    const { outbox } = filled(100);
    const first = makeLink();
    outbox.connected(first, []);
    outbox.acknowledged("cmd_a", 60);
    const second = makeLink();
    outbox.connected(second, [{ commandId: "cmd_a", offset: 20 }]);
    expect(offsets(second.frames)).toEqual([60]);
    const third = makeLink();
    outbox.connected(third, [{ commandId: "cmd_a", offset: 5_000 }]);
    expect(offsets(third.frames)).toEqual([]);
  });

  test("answers a stop only behind the command's result", () => {
    const { outbox } = filled(10);
    const link = makeLink();
    outbox.connected(link, []);
    outbox.answerStop("cmd_a");
    expect(link.frames.map((frame) => frame.t)).toEqual(["output"]);
    outbox.finish("cmd_a", result("cmd_a", 10));
    expect(link.frames.map((frame) => frame.t)).toEqual(["output", "result", "stopped"]);
  });

  test("waits while the socket holds much, and gives each command its turn", () => {
    const dir = scratch();
    const outbox = new Outbox(() => undefined);
    for (const id of ["cmd_a", "cmd_b"]) {
      const spool = new Spool(dir, id);
      spool.append(Buffer.alloc(3 * chunk));
      outbox.track(id, spool);
    }
    const link = makeLink();
    link.buffered = limits.outputWindowBytes + 1;
    outbox.connected(link, []);
    expect(link.frames).toEqual([]);
    link.buffered = 0;
    outbox.pump();
    const ids = link.frames.flatMap((frame) => (frame.t === "output" ? [frame.commandId] : []));
    expect(ids).toEqual(["cmd_a", "cmd_b", "cmd_a", "cmd_b", "cmd_a", "cmd_b"]);
  });
});
