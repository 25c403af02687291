// Curves with bands, points and things to drag, as SVG that can be saved as it is.

import { s, plain } from "./dom.js";
import { classColour, ink } from "./colour.js";
import { tickText, ticks } from "./axes.js";

const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

/** Lines through points, broken where one is missing. */
function through(x, y, px, py) {
  let [out, pen] = ["", false];
  for (let i = 0; i < x.length; i++) {
    if (y[i] === null || !Number.isFinite(y[i])) {
      pen = false;
      continue;
    }
    out += `${pen ? "L" : "M"}${px(x[i]).toFixed(1)} ${py(y[i]).toFixed(1)}`;
    pen = true;
  }
  return out;
}

function region(x, lo, hi, px, py) {
  if (!x.length) return "";
  const back = x.map((v, i) => [v, lo[i]]).reverse();
  return `${through(x, hi, px, py)}${back.map(([a, b]) => `L${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("")}Z`;
}

/**
 * A chart. `bands` are [lower, upper], the widest first; `lines` are { x, y, colour, width, name };
 * `points` are { x, y, alpha }; `uprights` are { x, text, drag }.
 */
export function chart({ width = 520, height = 300, title, xTitle, yTitle, xLimits, yLimits, bandX = [], bands = [], lines = [], points = [], uprights = [], xText = null, description }) {
  const colours = ink();
  const [left, right, top, bottom] = [58, 14, title ? 30 : 12, xTitle ? 42 : 26];
  const px = (v) => left + ((width - left - right) * (v - xLimits[0])) / (xLimits[1] - xLimits[0]);
  const py = (v) => top + (height - top - bottom) * (1 - (v - yLimits[0]) / (yLimits[1] - yLimits[0]));
  const text = (at, anchor, content, more = {}) => s("text", { x: at[0], y: at[1], "text-anchor": anchor, "font-size": 12, fill: colours.soft, ...more }, plain(content));
  const [across, up] = [ticks(...xLimits, Math.max(2, width / 90)), ticks(...yLimits, Math.max(2, height / 55))];
  const clip = `c${(chart.next = (chart.next || 0) + 1)}`;
  const inside = { x: left, y: top, width: width - left - right, height: height - top - bottom };
  const grid = [
    across.at.map((v) => [
      s("line", { x1: px(v), x2: px(v), y1: top, y2: height - bottom, stroke: colours.grid }),
      text([px(v), height - bottom + 16], "middle", xText ? xText(v, across.step) : tickText(v, across.step)),
    ]),
    up.at.map((v) => [
      s("line", { x1: left, x2: width - right, y1: py(v), y2: py(v), stroke: colours.grid }),
      text([left - 7, py(v) + 4], "end", tickText(v, up.step)),
    ]),
  ].flat(2);
  const middle = top + (height - top - bottom) / 2;
  const titles = [
    title && text([left, 19], "start", title, { "font-size": 13.5, "font-weight": 600, fill: colours.text }),
    xTitle && text([left + (width - left - right) / 2, height - 6], "middle", xTitle, { fill: colours.text }),
    yTitle && text([14, middle], "middle", yTitle, { fill: colours.text, transform: `rotate(-90 14 ${middle})` }),
  ];
  const svg = s("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height, "font-family": FONT, role: "img", "aria-label": plain(description || title || "") },
    s("defs", null, s("clipPath", { id: clip }, s("rect", inside))),
    s("rect", { width, height, fill: colours.ground }), grid,
    s("g", { "clip-path": `url(#${clip})` },
      points.map((p) => s("circle", { cx: px(p.x).toFixed(1), cy: py(p.y).toFixed(1), r: p.r || 2.6, fill: p.colour || colours.text, "fill-opacity": p.alpha ?? 0.5 })),
      bands.map(([lo, hi], k) => s("path", { d: region(bandX, lo, hi, px, py), fill: colours.accent, "fill-opacity": k ? 0.26 : 0.15 })),
      lines.map((l) => s("path", { d: through(l.x, l.y, px, py), fill: "none", stroke: l.colour || colours.accent, "stroke-width": l.width || 2, "stroke-linejoin": "round", "stroke-dasharray": l.dash })),
      uprights.map((u) => s("line", { x1: px(u.x), x2: px(u.x), y1: top, y2: height - bottom, stroke: u.colour || colours.soft, "stroke-width": 1.4, "stroke-dasharray": u.dash || "4 3" }))),
    s("rect", { ...inside, fill: "none", stroke: colours.line }),
    uprights.filter((u) => u.text).map((u) => {
      const before = px(u.x) > width - 110;
      return text([px(u.x) + (before ? -5 : 5), top + 14], before ? "end" : "start", u.text, { fill: colours.text });
    }),
    titles);
  return { svg, px, py, left, right, top, bottom, value: (at) => xLimits[0] + ((at - left) / (width - left - right)) * (xLimits[1] - xLimits[0]) };
}

/** The colours of class curves, and their names. */
export function classLines(x, classes, names) {
  return classes.map((y, k) => ({ x, y, colour: classColour(k), name: names[k] }));
}
