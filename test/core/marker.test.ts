import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addMarker, markerOf, readMarker } from "../../src/core/marker.ts";

const secret = "a secret of the deployment";
const id = "out_abc-def";

describe("[M1] a marked message", () => {
  test("is known again, with its body", () => {
    const sent = addMarker(secret, id, "Two tests fail:\n\n- `a`\n- `b`");
    expect(sent).toMatch(/\n\n<!-- switchyard:out_abc-def:[0-9a-f]{24} -->$/);
    expect(readMarker(secret, sent)).toEqual({ outboundId: id, body: "Two tests fail:\n\n- `a`\n- `b`" });
  });

  test("is known again when the provider changed line ends and what is blank at the end", () => {
    const sent = addMarker(secret, id, "one\r\ntwo  \n");
    expect(readMarker(secret, `${sent.replaceAll("\n", "\r\n")}\r\n`)?.outboundId).toBe(id);
  });

  test("is the same for the same message, and another for another id, body or secret", () => {
    expect(markerOf(secret, id, "x")).toBe(markerOf(secret, id, "x"));
    expect(new Set([markerOf(secret, id, "x"), markerOf(secret, id, "y"), markerOf("other", id, "x")]).size).toBe(3);
    expect(markerOf(secret, "out_other", "x")).not.toContain(id);
  });

  test("that quotes another marker of ours still has exactly one", () => {
    const body = `You wrote:\n\n${addMarker(secret, "out_other", "before")}`;
    const read = readMarker(secret, addMarker(secret, id, body));
    expect(read?.outboundId).toBe(id);
    expect(read?.body).toContain("quoted switchyard:out_other");
  });

  test("of any text is known again", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (body) => {
        expect(readMarker(secret, addMarker(secret, id, body))?.outboundId).toBe(id);
      }),
    );
  });
});

describe("[M2] a marker does not count", () => {
  const sent = addMarker(secret, id, "The answer is 42.");
  const marker = markerOf(secret, id, "The answer is 42.");

  test.each([
    ["when there is none", "The answer is 42."],
    ["in an empty text", ""],
    ["when the body was edited", sent.replace("42", "43")],
    ["when something was added before", `Look:\n${sent}`],
    ["when something was added after", `${sent}\nI disagree.`],
    ["when it is quoted", sent.replaceAll(/^/gm, "> ")],
    ["when it is quoted with words of one's own", `${sent.replaceAll(/^/gm, "> ")}\n\nThanks!`],
    ["in a fence", `\`\`\`\n${sent}\n\`\`\``],
    ["when there are two", `${sent}\n${marker}`],
    ["beside another's", `<!-- switchyard:out_x:000000000000000000000000 -->\n${sent}`],
    ["under another body", `Something else.\n\n${marker}`],
    ["with a forged MAC", sent.replace(/[0-9a-f]{24}/, "0".repeat(24))],
    ["with a short MAC", sent.replace(/[0-9a-f]{24}/, "00")],
    ["with another id", sent.replace("out_abc-def", "out_abc-xyz")],
    ["of another deployment", addMarker("another secret", id, "The answer is 42.")],
    ["inside a line", `The answer is 42. ${marker}`],
  ])("%s", (_name, text) => {
    expect(readMarker(secret, text)).toBeNull();
  });
});
