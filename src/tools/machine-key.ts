// Whether a machine's public key can stand for one machine.
import { bytesToHex } from "@noble/hashes/utils.js";
import { Fault } from "../protocol/fault.ts";
import { bytesOfBase64 } from "./daemon-socket.ts";

/** The points of small order by their y, and the encodings that are none: with them a signature fits that nobody made. */
const weak = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
]);

/** [E12] Refuses an Ed25519 key, raw and in base64, under which anybody could sign. */
export function requireStrongKey(publicKey: string): void {
  const bytes = bytesOfBase64(publicKey);
  // The highest bit is the sign of x, which makes no difference here.
  if (bytes?.length !== 32 || weak.has(bytesToHex(bytes.with(31, (bytes[31] ?? 0) & 0x7f))))
    throw new Fault("bad_input", "publicKey: this is no usable Ed25519 key; remove the daemon's identity.json and enrol again.");
}
