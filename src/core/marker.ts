// The marker by which we know our own message when it comes back: outbound id and a MAC over id and body.
// It is no secret. Anybody can copy it, so it counts only at the end of exactly the body that we wrote.
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { sha256Hex } from "./ids.ts";

const opening = /<!--\s*switchyard:/gi;
const lastLine = /(?:^|\n)<!-- switchyard:(out_[a-z0-9]+(?:-[a-z0-9]+)?):([0-9a-f]{24}) -->\s*$/;

/** Providers keep text as it is, except for line ends and what is blank at the end. */
const settled = (body: string): string => body.replace(/\r\n?/g, "\n").trimEnd();

/** A text of ours may quote a marker; that one must not stand beside the real one. */
const disarmed = (body: string): string => body.replace(opening, "<!-- quoted switchyard:");

/** [M1] The marker's line for a body. The same message always has the same marker. */
export function markerOf(secret: string, outboundId: string, body: string): string {
  const text = `switchyard-marker|${outboundId}|${sha256Hex(settled(disarmed(body)))}`;
  const mac = bytesToHex(hmac(sha256, utf8ToBytes(secret), utf8ToBytes(text))).slice(0, 24);
  return `<!-- switchyard:${outboundId}:${mac} -->`;
}

/** The body as it is sent: with its marker on the last line. */
export const addMarker = (secret: string, outboundId: string, body: string): string =>
  `${settled(disarmed(body))}\n\n${markerOf(secret, outboundId, body)}`;

/** [M2] Whose message this is, and its body without the marker; null when it has none, or a forged, quoted or second one, or was edited. */
export function readMarker(secret: string, text: string): { outboundId: string; body: string } | null {
  const whole = settled(text);
  if ((whole.match(opening) ?? []).length !== 1) return null;
  const match = lastLine.exec(whole);
  const outboundId = match?.[1];
  if (!match || outboundId === undefined) return null;
  const body = whole.slice(0, match.index).trimEnd();
  return sameText(markerOf(secret, outboundId, body), match[0].trim()) ? { outboundId, body } : null;
}

/** Compared over the full length: how far a guess was right must not show in the time it takes. */
function sameText(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}
