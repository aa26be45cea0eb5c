import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acknowledge,
  disconnected,
  dismissRefusal,
  dueFrames,
  emptyOutbox,
  enqueue,
  markSent,
  type Outbox,
  type OutboxFrame,
  parseEntry,
  refuse,
  rootPlaceholder,
  serialiseEntry,
} from "../../src/web/widget/outbox.ts";

const message = (n: number, threadId = "thr_a"): OutboxFrame => ({ t: "send", clientMsgId: `message-${n}`, threadId, text: `text ${n}` });
const press = (n: number): OutboxFrame => ({ t: "act", clientMsgId: `press-${n}xx`, threadId: "thr_a", taskId: "tsk_a", action: "stop" });
const ids = (outbox: Outbox): string[] => outbox.entries.map((entry) => entry.frame.clientMsgId);

test("a message leaves by its ack alone: sending it, and losing the connection, keep it", () => {
  let outbox = enqueue(emptyOutbox, message(1), 1);
  outbox = markSent(outbox, "message-1");
  expect(dueFrames(outbox, "thr_root")).toEqual([]);
  outbox = disconnected(outbox);
  expect(dueFrames(outbox, "thr_root")).toEqual([message(1)]);
  outbox = acknowledge(outbox, "message-1");
  expect(outbox.entries[0]?.state).toBe("delivered");
  expect(dueFrames(disconnected(outbox), "thr_root")).toEqual([]);
});

test("a button press leaves with its ack, because no row will stand for it", () => {
  expect(acknowledge(enqueue(emptyOutbox, press(1), 1), "press-1xx").entries).toEqual([]);
});

test("a refused message leaves the outbox and its words stay on the page until they are dismissed", () => {
  const outbox = refuse(enqueue(emptyOutbox, message(1), 1), "message-1", "This task has ended.");
  expect(outbox).toMatchObject({ entries: [], refusals: [{ frame: message(1), message: "This task has ended." }] });
  expect(dismissRefusal(outbox, "message-1")).toEqual(emptyOutbox);
});

test("[O5] a press that is refused after its ack, when it was carried out, is told all the same, and once", () => {
  let outbox = acknowledge(enqueue(emptyOutbox, press(1), 1), "press-1xx");
  outbox = refuse(refuse(outbox, "press-1xx", "Too late."), "press-1xx", "Too late.");
  expect(outbox.refusals).toEqual([{ frame: press(1), message: "Too late." }]);
  expect(dismissRefusal(outbox, "press-1xx")).toEqual(emptyOutbox);
});

test("what was typed before the root is known goes to the root", () => {
  expect(dueFrames(enqueue(emptyOutbox, message(1, rootPlaceholder), 1), "thr_root")).toEqual([message(1, "thr_root")]);
});

test("an entry survives a reload as waiting, and damaged ones are left alone", () => {
  const entry = { frame: message(1), atMs: 7, state: "sent" as const };
  expect(parseEntry(serialiseEntry(entry))).toEqual({ ...entry, state: "waiting" });
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    '{"frame":null}',
    '{"frame":{"t":"send"}}',
    '{"frame":{"t":"hello","clientMsgId":"a","threadId":"b"}}',
  ])
    expect(parseEntry(text)).toBeNull();
});

test("a late word that it was sent does not take back that it is durable", () => {
  const outbox = markSent(acknowledge(enqueue(emptyOutbox, message(1), 1), "message-1"), "message-1");
  expect(dueFrames(disconnected(outbox), "thr_root")).toEqual([]);
});

test("whatever the connection does, what is neither acknowledged nor refused stays, in order", () => {
  const step = fc.record({ what: fc.constantFrom("enqueue", "sent", "lost", "ack", "refuse"), n: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      let outbox = emptyOutbox;
      const expected: string[] = [];
      const done = new Set<string>();
      for (const { what, n } of steps) {
        const id = `message-${n}`;
        if (what === "enqueue" && !done.has(id)) {
          if (!expected.includes(id)) expected.push(id);
          outbox = enqueue(outbox, message(n), n);
        }
        if (what === "sent") outbox = markSent(outbox, id);
        if (what === "lost") outbox = disconnected(outbox);
        if ((what === "ack" || what === "refuse") && expected.includes(id)) {
          outbox = what === "ack" ? acknowledge(outbox, id) : refuse(outbox, id, "no");
          done.add(id);
        }
      }
      expect(ids({ ...outbox, entries: outbox.entries.filter((entry) => entry.state !== "delivered") })).toEqual(
        expected.filter((id) => !done.has(id)),
      );
      expect(dueFrames(disconnected(outbox), "thr_root").map((frame) => frame.clientMsgId)).toEqual(expected.filter((id) => !done.has(id)));
    }),
  );
});
