// The page of a regression: the prediction along each input, and a slider for each of the others.

import { clamp, count, download, h, latest, plain, say, select, short } from "./dom.js";
import { classColour } from "./colour.js";
import { extent, roomy } from "./axes.js";
import { readView, writeView } from "./view.js";
import { chart, classLines } from "./chart.js";
import { toPng } from "./figure.js";

export class RegressionPage {
  static async open(about, backend) {
    const page = new RegressionPage();
    Object.assign(page, { about, backend });
    page.usual = { target: 0, at: about.middle };
    page.view = readView(page.usual);
    if (page.view.at.length !== about.inputs.length) page.view.at = [...about.middle];
    if (!about.targets[page.view.target]) page.view.target = 0;
    page.view.at = [...page.view.at];
    page.build();
    await page.refresh();
    return page;
  }

  build() {
    const { about, view } = this;
    this.slices = [];
    this.now = h("p", { class: "facts" });
    this.cards = about.inputs.map((name, k) => {
      const place = h("div", { class: "chart" });
      const value = h("b");
      const [lo, hi] = about.range[k];
      const slider = h("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": plain(name), oninput: () => {
        view.at[k] = lo + ((hi - lo) * slider.value) / 1000;
        this.changed();
      } });
      const set = () => {
        slider.value = hi > lo ? (1000 * (view.at[k] - lo)) / (hi - lo) : 0;
        value.textContent = short(view.at[k]);
      };
      return { place, set, root: h("section", { class: "card" }, place, h("div", { class: "slider" }, h("span", { text: plain(name) }), value, slider)) };
    });
    const targets = about.targets.length > 1 && select("Target", about.targets.map((t, k) => [k, t]), view.target, (v) => {
      view.target = Number(v);
      this.limits = null;
      this.changed();
    });
    const reset = h("button", { type: "button", text: "All inputs to their medians", onclick: () => {
      view.at = [...about.middle];
      this.changed();
    } });
    this.refreshLater = latest(() => this.refresh());
    this.root = h("div", null,
      h("section", { class: "band" }, h("div", { class: "card" }, h("div", { class: "bar" }, targets, reset), this.now,
        h("p", { class: "note", text: about.classes.length
          ? "The probability of each class along each input; the others are where their sliders stand."
          : "The predictive mean along each input with its 50 % and 90 % bands, which hold observations; the other inputs are where their sliders stand. Dots are training rows, fainter the farther their other inputs are from the sliders." }))),
      h("div", { class: about.inputs.length === 1 ? "charts one" : "charts" }, this.cards.map((c) => c.root)));
  }

  changed() {
    this.cards.forEach((c) => c.set());
    this.refreshLater();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => writeView(this.view, this.usual), 200);
  }

  async refresh() {
    const { view, about } = this;
    const at = [...view.at];
    const all = await Promise.all(about.inputs.map((_, input) => this.backend.ask("slice", { input, target: view.target, at })));
    this.slices = all;
    const classes = about.classes.length > 0;
    // One scale for all inputs, which only grows while one moves.
    const own = classes ? [0, 1] : roomy(extent([...all.flatMap((s) => [...s.bands[0][0], ...s.bands[0][1]]), ...about.y[view.target]]), 0.03);
    this.limits = this.limits && !classes ? [Math.min(own[0], this.limits[0]), Math.max(own[1], this.limits[1])] : own;
    this.draw();
    const now = all[0].now;
    const text = classes
      ? [`Most probable here: ${plain(about.classes[now.most])}`, `probability ${short(now.classes[now.most], 3)}`]
      : [`${plain(about.targets[view.target])} here: ${short(now.mean)}`, `90 % band ${short(now.bands[0][0])} to ${short(now.bands[0][1])}`];
    this.now.replaceChildren(...text.map((t) => h("b", { text: t })));
    if (!this.painted) performance.mark("painted");
    this.painted = true;
  }

  drawing(k) {
    const { about, view } = this;
    const slice = this.slices[k];
    const classes = about.classes.length > 0;
    const spans = about.range.map(([lo, hi]) => hi - lo || 1);
    const points = classes ? [] : about.x[k].map((x, i) => {
      let far = 0;
      about.inputs.forEach((_, j) => {
        if (j !== k && about.x[j][i] !== null) far += ((about.x[j][i] - view.at[j]) / (0.25 * spans[j])) ** 2;
      });
      return { x, y: about.y[view.target][i], alpha: Math.max(0.06, 0.55 * Math.exp(-0.5 * far)) };
    }).filter((p) => p.x !== null && p.y !== null);
    const width = clamp(this.cards[k].place.clientWidth || 460, 300, 1180);
    return chart({
      width, height: Math.round(clamp(0.58 * width, 230, 440)),
      xTitle: about.inputs[k], yTitle: classes ? "probability" : about.targets[view.target],
      xLimits: [slice.x[0], slice.x[slice.x.length - 1]], yLimits: this.limits, bandX: slice.x, bands: slice.bands || [], points,
      lines: classes ? classLines(slice.x, slice.classes, about.classes) : [{ x: slice.x, y: slice.mean }],
      uprights: about.inputs.length > 1 ? [{ x: view.at[k] }] : [],
      description: `prediction along ${about.inputs[k]}`,
    });
  }

  draw() {
    this.cards.forEach((c, k) => {
      c.set();
      c.place.replaceChildren(this.drawing(k).svg);
      if (this.about.classes.length) c.place.append(h("p", { class: "facts" }, this.about.classes.map((name, j) => {
        const dot = h("b", { text: "■ " });
        dot.style.color = classColour(j);
        return h("span", null, dot, plain(name));
      })));
    });
  }

  async save(kind) {
    for (let k = 0; k < this.cards.length; k++) {
      const svg = new XMLSerializer().serializeToString(this.drawing(k).svg);
      const name = `along-${k + 1}`;
      if (kind === "svg") download(`${name}.svg`, svg, "image/svg+xml");
      else download(`${name}.png`, await toPng(svg), "image/png");
    }
    say("saved");
  }

  themed() {
    this.draw();
  }

  started() {
    this.draw();
    addEventListener("resize", () => this.draw());
  }

  key() {
    return false;
  }

  facts() {
    const { about } = this;
    return `${about.model} · ${count(about.n, "row")} · ${count(about.inputs.length, "input")} · kernel ${about.kernel}`;
  }

  help() {
    return [["Tab, arrow keys", "move the sliders"]];
  }
}
