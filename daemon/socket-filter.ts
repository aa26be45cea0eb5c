// A seccomp program (classic BPF) that keeps a command from sockets of other programs on this machine. Sockets without a file belong to
// the network namespace, which the command shares: covering folders does not hide them.
import { endianness } from "node:os";

const load = 0x20; // ld  [k]
const ifEqual = 0x15; // jeq #k
const ifBits = 0x45; // jset #k
const and = 0x54; // and #k
const end = 0x06; // ret #k

const allow = 0x7fff0000;
const errno = (number: number): number => 0x00050000 | number;
const notPermitted = errno(1);
const notImplemented = errno(38);

const numberAt = 0;
const archAt = 4;
/** The low half of an argument: both machines are little-endian. */
const argumentAt = (index: number): number => 16 + 8 * index;

const afUnix = 1;
const typeMask = 0xf;
const stream = 1;
const seqpacket = 5;
const ioUringSetup = 425;

type Machine = { arch: number; socket: number; socketpair: number; foreignBit: number };
const machines: Partial<Record<NodeJS.Architecture, Machine>> = {
  // `foreignBit` marks the x32 calls.
  x64: { arch: 0xc000003e, socket: 41, socketpair: 53, foreignBit: 0x40000000 },
  arm64: { arch: 0xc00000b7, socket: 198, socketpair: 199, foreignBit: 0 },
};

/**
 * The program for this machine, or null where none is known. Refused: `socket(AF_UNIX)`; a datagram `socketpair`, which could be turned
 * to any address; io_uring, which makes sockets past the filter; and every call of another architecture, whose numbers differ.
 */
export function socketFilter(architecture: NodeJS.Architecture): Buffer | null {
  const machine = machines[architecture];
  if (!machine || endianness() !== "LE") return null;
  // Jumps count the instructions that are skipped.
  const program: [code: number, whenTrue: number, whenFalse: number, value: number][] = [
    [load, 0, 0, archAt],
    [ifEqual, 1, 0, machine.arch],
    [end, 0, 0, notImplemented],
    [load, 0, 0, numberAt],
    [ifBits, 11, 0, machine.foreignBit],
    [ifEqual, 10, 0, ioUringSetup],
    [ifEqual, 6, 0, machine.socket],
    [ifEqual, 0, 7, machine.socketpair],
    [load, 0, 0, argumentAt(1)],
    [and, 0, 0, typeMask],
    [ifEqual, 4, 0, stream],
    [ifEqual, 3, 0, seqpacket],
    [end, 0, 0, notPermitted],
    [load, 0, 0, argumentAt(0)],
    [ifEqual, 2, 0, afUnix],
    [end, 0, 0, allow],
    [end, 0, 0, notImplemented],
    [end, 0, 0, notPermitted],
  ];
  const bytes = Buffer.alloc(8 * program.length);
  program.forEach(([code, whenTrue, whenFalse, value], at) => {
    bytes.writeUInt16LE(code, 8 * at);
    bytes.writeUInt8(whenTrue, 8 * at + 2);
    bytes.writeUInt8(whenFalse, 8 * at + 3);
    bytes.writeUInt32LE(value, 8 * at + 4);
  });
  return bytes;
}
