// A decoded row as an image, a curve or a table of columns.

import { h, s, short, plain } from "./dom.js";
import { ink } from "./colour.js";
import { extent, roomy, tickText, ticks } from "./axes.js";

/** Rows of a table that are all written at once. */
const LONG = 40;
/** No row is lower than so many pixels. */
const ROW = 20;

/** The ways in which the rows of this model can be looked at, the usual one first. */
export function looks(about) {
  const numbered = about.columns.every((c) => c.trim() !== "" && Number.isFinite(Number(c)));
  const curve = about.d > 2 && (numbered || about.d > 24);
  const all = about.images ? ["image", "table", "curve"] : curve ? ["curve", "table"] : ["table", "curve"];
  return about.d > 2 ? all : ["table"];
}

/** Numbers as an image of grey pixels, `lo` black and `hi` white. */
export function picture([high, wide], values, [lo, hi], canvas = h("canvas")) {
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const context = canvas.getContext("2d");
  const image = context.createImageData(wide, high);
  for (let i = 0; i < wide * high; i++) {
    const grey = values[i] === null ? 128 : (255 * (values[i] - lo)) / (hi - lo || 1);
    image.data.set([grey, grey, grey, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Shows rows that change many times a second. */
export class Values {
  constructor(about, look, { pixels = 132, deviations = true } = {}) {
    this.about = about;
    this.pixels = pixels;
    this.deviations = deviations;
    this.root = h("div");
    this.setLook(look);
  }

  setLook(look) {
    this.look = look;
    this.parts = null;
    this.root.replaceChildren();
    if (this.last) this.show(...this.last);
  }

  /** Means, deviations, and which cells were not given but filled. */
  show(mean, std, filled = null) {
    this.last = [mean, std, filled];
    if (this.look === "image") this.image(mean, std);
    else if (this.look === "curve") this.curve(mean, std, filled);
    else this.table(mean, std, filled);
  }

  image(mean, std) {
    const { images, range } = this.about;
    const most = Math.max(...std);
    if (!this.parts) {
      const sized = (canvas) => {
        const scale = this.pixels / Math.max(...images);
        canvas.style.width = `${Math.round(images[1] * scale)}px`;
        canvas.style.height = `${Math.round(images[0] * scale)}px`;
        return canvas;
      };
      this.parts = [sized(h("canvas", { role: "img", "aria-label": "decoded image" })), sized(h("canvas", { role: "img", "aria-label": "its uncertainty" }))];
      this.note = h("figcaption");
      const figures = [h("figure", null, this.parts[0], this.deviations && h("figcaption", { text: "mean" }))];
      if (this.deviations) figures.push(h("figure", null, this.parts[1], this.note));
      this.root.append(h("div", { class: "pictures" }, figures));
    }
    picture(images, mean, range, this.parts[0]);
    if (!this.deviations) return;
    // One scale wherever one looks: a quarter of the range of the data is white.
    picture(images, std, [0, (range[1] - range[0]) / 4], this.parts[1]);
    this.note.textContent = `deviation, up to ${short(most, 3)}`;
  }

  curve(mean, std, filled) {
    const [wide, high] = [336, 170];
    const colours = ink();
    const x = this.about.columns.map((c, j) => (this.numbers ? Number(c) : j));
    const bounds = extent(mean.flatMap((m, j) => [m - 2 * std[j], m + 2 * std[j]]));
    // Limits only grow while one looks around, so that the eye can compare.
    this.limits = this.limits ? [Math.min(bounds[0], this.limits[0]), Math.max(bounds[1], this.limits[1])] : extent([...this.about.range, ...bounds]);
    const [lo, hi] = roomy(this.limits, 0.03);
    const [left, bottom] = [46, 20];
    const px = (v) => left + ((wide - left - 6) * (v - x[0])) / (x[x.length - 1] - x[0] || 1);
    const py = (v) => 6 + (high - 6 - bottom) * (1 - (v - lo) / (hi - lo));
    const line = (values) => values.map((v, j) => `${j ? "L" : "M"}${px(x[j]).toFixed(1)} ${py(v).toFixed(1)}`).join("");
    const band = line(mean.map((m, j) => m + 2 * std[j])) + mean.map((m, j) => [m - 2 * std[j], j]).reverse().map(([v, j]) => `L${px(x[j]).toFixed(1)} ${py(v).toFixed(1)}`).join("") + "Z";
    const { at, step } = ticks(lo, hi, 4);
    const grid = at.map((v) => [
      s("line", { x1: left, x2: wide - 6, y1: py(v), y2: py(v), stroke: colours.grid }),
      s("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end", "font-size": 11, fill: colours.soft }, tickText(v, step)),
    ]);
    const ends = [[x[0], "start", this.about.columns[0]], [x[x.length - 1], "end", this.about.columns[this.about.d - 1]]];
    const names = ends.map(([v, anchor, text]) => s("text", { x: px(v), y: high - 5, "text-anchor": anchor, "font-size": 11, fill: colours.soft }, plain(text)));
    const dots = (filled ? mean.map((m, j) => filled[j] && s("circle", { cx: px(x[j]), cy: py(m), r: 2.5, fill: "#d55e00" })) : []).filter(Boolean);
    this.root.replaceChildren(h("div", { class: "curve" }, s("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "decoded curve with a band of two standard deviations" },
      grid, names, s("path", { d: band, fill: colours.accent, "fill-opacity": 0.2 }),
      s("path", { d: line(mean), fill: "none", stroke: colours.accent, "stroke-width": 1.8, "stroke-linejoin": "round" }), dots)));
  }

  table(mean, std, filled) {
    if (!this.parts) {
      this.parts = this.about.columns.map((name) => {
        const [value, deviation] = [h("td"), h("td", { class: "soft" })];
        return { row: h("tr", null, h("th", { scope: "row", text: plain(name), title: plain(name) }), value, deviation), value, deviation };
      });
      const head = h("thead", null, h("tr", null, h("th", { text: "column" }), h("th", { text: "value" }), h("th", { text: "± deviation" })));
      this.scroll = h("div", { class: "values", tabindex: "0", role: "region", "aria-label": "values", onscroll: () => this.show(...this.last) }, h("table", null, head, h("tbody", null, this.parts.map((p) => p.row))));
      this.root.append(this.scroll);
    }
    // Of a long table the rows that are seen, and some around them.
    const { scrollTop, clientHeight } = this.scroll;
    const [from, to] = this.parts.length > LONG ? [scrollTop / ROW - 4, (scrollTop + (clientHeight || 400)) / ROW + 4] : [0, Infinity];
    this.parts.forEach((p, j) => {
      if (j < from || j > to) return;
      p.value.textContent = short(mean[j]);
      p.value.className = filled && filled[j] ? "filled" : "";
      p.deviation.textContent = std[j] ? short(std[j], 3) : "";
    });
  }
}
