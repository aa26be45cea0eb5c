// Pictures of a run as plain SVG, readable on a light and on a dark page.

export type Series = { name: string; colour: string; dashed?: boolean; points: readonly (readonly [number, number])[] };
export type Panel = {
  title: string;
  xLabel: string;
  yLabel: string;
  series: readonly Series[];
  logX?: boolean;
  /** What is above is drawn at the edge. */
  maxY?: number;
  steps?: boolean;
};

export const colours = { ours: "#2f7dd1", essay: "#d1782f", third: "#8a5fbf", fourth: "#3f9a63", fifth: "#c24d6b" } as const;

const panelWidth = 400;
const panelHeight = 290;
const edge = { left: 56, right: 14, top: 34, bottom: 44 };

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? c);
const short = (value: number): string =>
  Math.abs(value) >= 1_000 ? `${Number((value / 1_000).toPrecision(3))}k` : String(Number(value.toPrecision(3)));

/** Round numbers from 0 up to at least `max`. */
function ticksTo(max: number): number[] {
  const rough = max / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, i) => i * step);
}

function drawPanel(panel: Panel): string {
  const all = panel.series.flatMap(({ points }) => points);
  const xs = all.map(([x]) => x);
  const ys = all.map(([, y]) => y).filter(Number.isFinite);
  const ticks = ticksTo(Math.min(panel.maxY ?? Number.POSITIVE_INFINITY, Math.max(...ys)));
  const top = ticks.at(-1) ?? 1;
  const width = panelWidth - edge.left - edge.right;
  const height = panelHeight - edge.top - edge.bottom;
  const scale = (value: number): number => (panel.logX ? Math.log(value) : value);
  const low = scale(Math.min(...xs));
  const span = scale(Math.max(...xs)) - low || 1;
  const x = (value: number): string => (edge.left + ((scale(value) - low) / span) * width).toFixed(1);
  const y = (value: number): string => (edge.top + height - (Math.min(value, top) / top) * height).toFixed(1);
  const parts = [`<text class="title" x="${edge.left}" y="18">${escaped(panel.title)}</text>`];
  for (const tick of ticks) {
    parts.push(`<line class="grid" x1="${edge.left}" x2="${edge.left + width}" y1="${y(tick)}" y2="${y(tick)}"/>`);
    parts.push(`<text class="tick" x="${edge.left - 6}" y="${Number(y(tick)) + 4}" text-anchor="end">${short(tick)}</text>`);
  }
  const marks = panel.logX ? [...new Set(xs)].sort((a, b) => a - b) : ticksTo(Math.max(...xs)).filter((tick) => tick <= Math.max(...xs));
  let lastX = Number.NEGATIVE_INFINITY;
  for (const mark of marks) {
    const at = Number(x(mark));
    if (at - lastX < 24) continue;
    lastX = at;
    parts.push(`<text class="tick" x="${at}" y="${edge.top + height + 16}" text-anchor="middle">${short(mark)}</text>`);
  }
  parts.push(`<text class="tick" x="${edge.left + width / 2}" y="${panelHeight - 8}" text-anchor="middle">${escaped(panel.xLabel)}</text>`);
  parts.push(
    `<text class="tick" transform="translate(13 ${edge.top + height / 2}) rotate(-90)" text-anchor="middle">${escaped(panel.yLabel)}</text>`,
  );
  for (const { points, colour, dashed } of panel.series) {
    const drawn = points.filter(([, value]) => Number.isFinite(value));
    let path = "";
    drawn.forEach(([px, py], i) => {
      path += i === 0 ? `M${x(px)} ${y(py)}` : panel.steps ? `H${x(px)}V${y(py)}` : `L${x(px)} ${y(py)}`;
    });
    parts.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"${dashed ? ' stroke-dasharray="5 4"' : ""}/>`);
    if (!panel.steps) for (const [px, py] of drawn) parts.push(`<circle cx="${x(px)}" cy="${y(py)}" r="2.6" fill="${colour}"/>`);
  }
  return parts.join("\n");
}

/** What a reader who does not see the picture is told, and the line below it that says how the data came about. */
export type About = { title: string; desc: string; note: string };

const lineHeight = 18;

/** Panels side by side; the legend and the note are below them. */
export function drawChart({ title, desc, note }: About, panels: readonly Panel[]): string {
  const names = new Map(panels.flatMap(({ series }) => series.map((each): [string, Series] => [each.name, each])));
  const width = panelWidth * panels.length;
  let x = edge.left;
  let y = panelHeight + 12;
  const legend = [...names.values()].map(({ name, colour, dashed }) => {
    const space = 44 + name.length * 6.4;
    if (x > edge.left && x + space > width) {
      x = edge.left;
      y += lineHeight;
    }
    const entry = `<line x1="${x}" x2="${x + 22}" y1="${y}" y2="${y}" stroke="${colour}" stroke-width="2"${dashed ? ' stroke-dasharray="5 4"' : ""}/><text class="tick" x="${x + 28}" y="${y + 4}">${escaped(name)}</text>`;
    x += space;
    return entry;
  });
  y += lineHeight;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y + 14}" role="img" aria-labelledby="title desc">
<title id="title">${escaped(title)}</title>
<desc id="desc">${escaped(`${desc} ${note}`)}</desc>
<style>text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;font-size:13px}.note{font-size:11px}.grid{stroke:#8b949e;stroke-opacity:.3}@media(prefers-color-scheme:dark){text{fill:#a5afba}}</style>
${panels.map((panel, i) => `<g transform="translate(${i * panelWidth} 0)">\n${drawPanel(panel)}\n</g>`).join("\n")}
${legend.join("\n")}
<text class="note" x="${edge.left}" y="${y + 4}">${escaped(note)}</text>
</svg>
`;
}
