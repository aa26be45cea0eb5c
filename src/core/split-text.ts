// Splits a text for a platform that takes only so much in one message: never inside a character as people see it, code fences whole in
// each piece, nothing lost. [L3]

/** How the platform counts: UTF-16 units, as most do, or bytes of UTF-8. */
export type Unit = "utf16" | "utf8";

/** A piece of the text with the fence lines that were put around it; the bodies together are the text. */
export type Piece = { head: string; body: string; tail: string };

/** A code block in the text: from its opening marks to after its closing marks. */
type Block = { start: number; bodyFrom: number; closeAt: number; end: number; marks: string; info: string };

/** A longer first line than this is no name of a language: it is not repeated. */
const maxInfoChars = 24;
const graphemes = new Intl.Segmenter("und", { granularity: "grapheme" });
/** One visible character may have many units: the window that is looked at reaches so much over the limit. */
const graphemeSlack = 256;

/** The pieces as they are sent, each within `limit`. A limit below the size of one character gives that character alone. */
export const splitText = (text: string, limit: number, unit: Unit = "utf16"): string[] =>
  splitPieces(text, limit, unit).map(({ head, body, tail }) => head + body + tail);

export function splitPieces(text: string, limit: number, unit: Unit = "utf16"): Piece[] {
  if (sizeOf(text, unit) <= limit) return text === "" ? [] : [{ head: "", body: text, tail: "" }];
  const blocks = blocksOf(text);
  const pieces: Piece[] = [];
  for (let at = 0; at < text.length; ) {
    const piece = nextPiece(text, at, limit, unit, blocks);
    pieces.push(piece);
    at += piece.body.length;
  }
  return pieces;
}

function nextPiece(text: string, from: number, limit: number, unit: Unit, blocks: readonly Block[]): Piece {
  // Fence lines are put in only where they leave most of the message to the text.
  const isSmall = (line: string): boolean => sizeOf(line, unit) + 16 <= limit / 2;
  const fenced = blocks.filter(({ marks }) => isSmall(marks));
  const inside = blockAt(fenced, from);
  const named = inside === null ? "" : inside.marks + inside.info;
  const head = inside === null ? "" : `${isSmall(named) ? named : inside.marks}\n`;
  const room = limit - sizeOf(head, unit);
  for (let kept = 0; ; ) {
    const end = chooseEnd(text, from, longestEnd(text, from, room - kept, unit), blocks);
    const open = blockAt(fenced, end);
    const body = text.slice(from, end);
    const tail = open === null ? "" : `${body.endsWith("\n") ? "" : "\n"}${open.marks}`;
    if (sizeOf(tail, unit) <= kept) return { head, body, tail };
    kept = sizeOf(tail, unit) + 1;
  }
}

/** The end of what fits from a place on, between two visible characters; one character at least. */
function longestEnd(text: string, from: number, room: number, unit: Unit): number {
  const window = text.slice(from, from + Math.max(1, room) + graphemeSlack);
  const whole = from + window.length === text.length;
  let end = 0;
  let used = 0;
  for (const { segment } of graphemes.segment(window)) {
    const next = end + segment.length;
    used += sizeOf(segment, unit);
    // The last one of a window that is cut may go on behind it.
    if (used > room || (!whole && next === window.length)) break;
    end = next;
  }
  return from + (end > 0 ? end : codePoints(window, room, unit));
}

/** For a character larger than the room: as many of its code points as fit, one at least. */
function codePoints(text: string, room: number, unit: Unit): number {
  let end = 0;
  let used = 0;
  for (const point of text) {
    used += sizeOf(point, unit);
    if (end > 0 && used > room) break;
    end += point.length;
  }
  return end;
}

/** Before the longest end, where a reader would pause: a paragraph, a line, a sentence, a word, if that keeps at least half. */
function chooseEnd(text: string, from: number, longest: number, blocks: readonly Block[]): number {
  if (longest >= text.length) return text.length;
  const window = text.slice(from, longest);
  const breaks = blockAt(blocks, longest) ? [/\n/g] : [/\n\s*\n/g, /\n/g, /[.!?…。！？]["'”’)\]]*\s/gu, /\s/gu];
  for (const pause of breaks) {
    const last = [...window.matchAll(pause)].map((match) => match.index + match[0].length).findLast((end) => end >= window.length / 2);
    if (last !== undefined) return beforeMarks(text, from, from + last, blocks);
  }
  return beforeMarks(text, from, longest, blocks);
}

/** Marks of a fence stay together, and a closing fence stays with a line of its code. */
function beforeMarks(text: string, from: number, end: number, blocks: readonly Block[]): number {
  for (const block of blocks) {
    if (end > block.start && end < block.bodyFrom && block.start > from) return block.start;
    if (end >= block.closeAt && end < block.end) {
      const line = text.lastIndexOf("\n", block.closeAt - 2) + 1;
      if (line > from && line > block.bodyFrom) return line;
      if (block.closeAt > from) return block.closeAt;
    }
  }
  return midLine(text, from, end);
}

/** Marks in the middle of a line are none; at the beginning of a message they would be. */
function midLine(text: string, from: number, end: number): number {
  const starts = [...graphemes.segment(text.slice(from, end))].map(({ index }) => from + index);
  let at = end;
  while (at > from && text[at - 1] !== "\n" && /^ {0,3}(?:`{3}|~{3})/.test(text.slice(at, at + 6))) at = starts.pop() ?? from;
  return at > from ? at : end;
}

/** The block that is open at a place. */
const blockAt = (blocks: readonly Block[], at: number): Block | null =>
  blocks.find((block) => at >= block.bodyFrom && at < block.end) ?? null;

/** Blocks as chat platforms see them: a line that begins with the marks ends the block, whatever follows on it. */
function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | null = null;
  for (const line of text.matchAll(/^( {0,3})(`{3,}|~{3,})([^\n]*)/gm)) {
    const marks = line[2] ?? "";
    const start = line.index;
    const afterMarks = start + (line[1]?.length ?? 0) + marks.length;
    if (open === null) {
      const info = (line[3] ?? "").trim();
      open = {
        start,
        bodyFrom: afterMarks,
        closeAt: text.length,
        end: text.length + 1,
        marks,
        // With a mark of its own in it, it would make another fence of the marks.
        info: info.length > maxInfoChars || info.includes(marks.charAt(0)) ? "" : info,
      };
      blocks.push(open);
    } else if (marks[0] === open.marks[0] && marks.length >= open.marks.length) {
      open.closeAt = start;
      open.end = afterMarks;
      open = null;
    }
  }
  return blocks;
}

function sizeOf(text: string, unit: Unit): number {
  if (unit === "utf16") return text.length;
  let bytes = 0;
  for (const point of text) {
    const code = point.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

/** The longest beginning of at most `bytes` of UTF-8, cut between two code points. */
export function fitBytes(text: string, bytes: number): string {
  // No unit is more than three bytes: mostly nothing has to be counted.
  if (3 * text.length <= bytes) return text;
  let end = 0;
  let used = 0;
  for (const point of text) {
    used += sizeOf(point, "utf8");
    if (used > bytes) break;
    end += point.length;
  }
  return text.slice(0, end);
}
