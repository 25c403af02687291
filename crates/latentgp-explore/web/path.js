// The way between two pinned positions, step by step.

import { card, h, s, say, short, toggle } from "./dom.js";
import { ink } from "./colour.js";
import { Values, picture } from "./value.js";

/** Pictures of a strip. */
const FRAMES = 9;
/** Steps of a straight way where the server is not there to say. */
const STEPS = 40;
const NAMES = { straight: "Straight line", geodesic: "Low variance" };

export class PathCard {
  /** `on` has show(path or null). */
  constructor({ about, backend, view, on }) {
    Object.assign(this, { about, backend, view, on });
    this.playing = null;
    this.asked = 0;
    this.body = h("div");
    this.root = card("Path between two pins", null, this.body);
    this.values = new Values(about, view.look, { pixels: 120 });
    this.changed();
  }

  setLook(look) {
    this.values.setLook(look);
    if (this.found) this.layout();
  }

  /** The pins are others now. */
  async changed() {
    this.stop();
    const ends = this.view.pins.slice(-2);
    this.found = null;
    this.on.show(null);
    if (ends.length < 2 || (!this.backend.live && this.about.no_decoder)) {
      this.body.replaceChildren(h("p", { class: "note", text: "Pin two positions: the rows decoded between them play here, along the straight line and along the path of low predictive variance." }));
      return;
    }
    const turn = ++this.asked;
    this.body.replaceChildren(h("p", { class: "note", text: "Looking for the path…" }));
    try {
      const paths = await this.paths(ends[0].x, ends[1].x);
      for (const path of Object.values(paths)) {
        const { mean, std } = await this.backend.ask("decode", { x: path.x });
        const unit = std.map((row) => Math.sqrt(row.reduce((sum, v, j) => sum + (v / this.about.scale[j]) ** 2, 0) / row.length));
        Object.assign(path, { mean, std, unit, average: unit.reduce((a, b) => a + b, 0) / unit.length });
      }
      if (turn !== this.asked) return;
      this.found = paths;
      this.chosen = paths.geodesic ? "geodesic" : "straight";
      this.at = 0;
      this.layout();
    } catch (error) {
      if (turn === this.asked) this.body.replaceChildren(h("p", { class: "warning", text: error.message }));
    }
  }

  async paths(from, to) {
    if (this.about.geodesic) return this.backend.ask("path", { from, to });
    const x = Array.from({ length: STEPS + 1 }, (_, i) => from.map((v, k) => v + ((to[k] - v) * i) / STEPS));
    return { straight: { x, length: null } };
  }

  layout() {
    const kinds = Object.keys(this.found);
    const tabs = h("div", { class: "chips", role: "group", "aria-label": "which path" }, kinds.map((k) => {
      const button = toggle(NAMES[k], k === this.chosen, () => {
        this.chosen = k;
        this.layout();
      });
      return button;
    }));
    this.play = h("button", { type: "button", class: "primary", text: "▶ Play", onclick: () => (this.playing ? this.stop() : this.start()) });
    this.slider = h("input", { type: "range", min: 0, max: this.path.x.length - 1, step: 1, "aria-label": "place on the path", oninput: () => {
      this.stop();
      this.show(Number(this.slider.value));
    } });
    const facts = h("div", { class: "facts" }, kinds.map((k) => h("span", null, h("b", { text: NAMES[k] }), `: mean deviation ${short(this.found[k].average, 3)}`, this.found[k].length === null ? "" : `, length ${short(this.found[k].length, 3)}`)));
    const why = kinds.length === 1 && h("p", { class: "note", text: this.backend.live
      ? "The expected metric of a linear model is the same everywhere: its paths are straight."
      : "The path of low variance needs the server: `latentgp explore` finds it." });
    const strips = this.about.images && this.values.look === "image" && kinds.map((k) => this.strip(this.found[k]));
    this.body.replaceChildren(h("div", { class: "row" }, this.play, tabs), this.slider, this.values.root, ...(strips || []), this.profile(), facts, why || "");
    this.show(this.at);
  }

  get path() {
    return this.found[this.chosen];
  }

  strip(path) {
    const frames = Array.from({ length: FRAMES }, (_, i) => Math.round((i * (path.x.length - 1)) / (FRAMES - 1)));
    return h("div", { class: "strip", role: "img", "aria-label": "images along the path" }, frames.map((i) => picture(this.about.images, path.mean[i], this.about.range)));
  }

  /** The deviation along each path. */
  profile() {
    const [wide, high, colours] = [336, 66, ink()];
    const most = Math.max(...Object.values(this.found).flatMap((p) => p.unit), 1e-12);
    const curve = (p) => p.unit.map((v, i) => `${i ? "L" : "M"}${((wide * i) / (p.unit.length - 1)).toFixed(1)} ${(high - 4 - ((high - 22) * v) / most).toFixed(1)}`).join("");
    this.mark = s("line", { y1: 14, y2: high, stroke: colours.text, "stroke-width": 1 });
    return h("div", { class: "curve" }, s("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "deviation along the paths" },
      s("text", { x: 0, y: 10, "font-size": 11, fill: colours.soft }, "deviation along the path, in units of the scaled data"),
      Object.entries(this.found).map(([k, p]) => s("path", { d: curve(p), fill: "none", stroke: k === this.chosen ? colours.accent : colours.soft, "stroke-width": k === this.chosen ? 2 : 1.4, "stroke-dasharray": k === "straight" ? "5 4" : null })), this.mark));
  }

  show(i) {
    this.at = Math.min(i, this.path.x.length - 1);
    this.slider.value = this.at;
    const x = (336 * this.at) / (this.path.x.length - 1);
    this.mark.setAttribute("x1", x);
    this.mark.setAttribute("x2", x);
    this.values.show(this.path.mean[this.at], this.path.std[this.at]);
    const lines = Object.fromEntries(Object.entries(this.found).map(([k, p]) => [k, p.x]));
    this.on.show({ lines, chosen: this.chosen, now: this.path.x[this.at] });
  }

  start() {
    if (this.at >= this.path.x.length - 1) this.at = 0;
    this.play.textContent = "❚❚ Pause";
    this.playing = setInterval(() => {
      if (this.at >= this.path.x.length - 1) this.stop();
      else this.show(this.at + 1);
    }, 90);
    say("playing");
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    if (this.play) this.play.textContent = "▶ Play";
  }
}
