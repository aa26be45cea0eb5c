/** Parses lines like `06:12 high 4.1` into `{ minutes, kind, metres }`. */
export function parseTides(text) {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [time, kind, metres] = line.trim().split(/\s+/);
      const [hours, minutes] = time.split(":").map(Number);
      return { minutes: hours * 60 + minutes, kind, metres: Number(metres) };
    });
}

/** The next high water at or after `minutes`, or null when there is none left today. */
export function nextHighWater(tides, minutes) {
  // The fault of this sample: "at or after" is written as "after".
  return tides.find((tide) => tide.kind === "high" && tide.minutes > minutes) ?? null;
}
