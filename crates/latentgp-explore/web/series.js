// The page of a model of series: the forecast, its horizon and where it begins.

import { clamp, count, csv, download, h, latest, plain, select, short } from "./dom.js";
import { extent, roomy } from "./axes.js";
import { readView, writeView } from "./view.js";
import { chart } from "./chart.js";
import { ink } from "./colour.js";
import { toPng } from "./figure.js";

/** Standard deviations of the 90 % and the 50 % band of a normal distribution. */
const WIDTHS = [1.6448536, 0.6744898];
/** How many horizons of history are drawn. */
const HISTORY = 5;

export class SeriesPage {
  static async open(about, backend) {
    const page = new SeriesPage();
    Object.assign(page, { about, backend });
    const cut = about.beyond ? about.n : Math.max(about.least, about.n - about.horizon);
    page.usual = { series: 0, cut, horizon: about.horizon };
    page.view = readView(page.usual);
    page.view.series = clamp(Math.round(page.view.series), 0, about.names.length - 1);
    page.view.cut = clamp(Math.round(page.view.cut), about.least, about.n);
    page.view.horizon = clamp(Math.round(page.view.horizon), 1, about.most);
    page.build();
    await page.refresh();
    return page;
  }

  build() {
    const { about, view } = this;
    this.refreshLater = latest(() => this.refresh());
    const slider = (name, lo, hi, text) => {
      const value = h("b");
      const input = h("input", { type: "range", min: lo, max: hi, step: 1, "aria-label": text, oninput: () => {
        view[name] = Number(input.value);
        this.changed();
      } });
      return { set: () => {
        input.value = view[name];
        value.textContent = String(view[name]);
      }, root: h("div", { class: "slider" }, h("span", { text }), value, input) };
    };
    this.sliders = [slider("horizon", 1, Math.min(about.most, Math.max(4 * about.horizon, 48)), "Steps ahead"), slider("cut", about.least, about.n, "Known rows: the forecast begins after them")];
    this.place = h("div", { class: "chart" });
    this.facts_ = h("div", { class: "facts" });
    const which = about.names.length > 1 && select("Series", about.names.map((n, k) => [k, n]), view.series, (v) => {
      view.series = Number(v);
      this.changed();
    });
    this.root = h("div", null,
      h("div", { class: "charts one" }, h("section", { class: "card" }, which || "", this.place, this.facts_, this.sliders.map((s) => s.root),
        h("p", { class: "note", text: "Drag the two upright lines in the chart, or use the sliders. The model is the one that was trained on all rows: moving the cut forecasts from less history, with the same parameters." }))));
  }

  changed() {
    this.sliders.forEach((s) => s.set());
    this.refreshLater();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => writeView(this.view, this.usual), 200);
  }

  async refresh() {
    const { cut, horizon } = this.view;
    this.found = { cut, ...(await this.backend.ask("forecast", { cut, horizon })) };
    this.draw();
    if (!this.painted) performance.mark("painted");
    this.painted = true;
  }

  /** As wide as there is room, so that its text is as large as that around it. */
  get size() {
    const width = clamp(this.place.clientWidth || 980, 320, 1180);
    return { width, height: Math.round(clamp(0.46 * width, 270, 460)) };
  }

  drawing() {
    const { about, view, found } = this;
    const d = view.series;
    const [mean, std] = [found.mean[d], found.std[d]];
    const ahead = mean.map((_, i) => found.cut + i);
    const edges = WIDTHS.map((w) => [mean.map((m, i) => m - w * std[i]), mean.map((m, i) => m + w * std[i])]);
    const from = Math.max(0, found.cut - Math.max(HISTORY * mean.length, 3 * about.least));
    const to = Math.max(found.cut + mean.length, Math.min(about.n, found.cut + 1));
    const rows = about.values[d].map((y, x) => ({ x, y })).slice(from, to);
    const inside = [...rows.map((r) => r.y), ...edges[0][0], ...edges[0][1]];
    const colours = ink();
    const last = about.values[d][found.cut - 1];
    return chart({
      ...this.size, title: about.names[d], xTitle: "row", yTitle: about.names[d],
      xLimits: [from - 0.5, to + Math.max(1, (to - from) * 0.03)], yLimits: roomy(extent(inside), 0.05), bandX: ahead, bands: edges,
      points: rows.filter((r) => r.y !== null).map((r) => ({ ...r, r: rows.length > 250 ? 1.4 : 2.4, alpha: r.x < found.cut ? 0.8 : 0.5 })),
      lines: [
        { x: rows.map((r) => r.x), y: rows.map((r) => (r.x < found.cut ? r.y : null)), colour: colours.soft, width: 1.2 },
        { x: last === null ? ahead : [found.cut - 1, ...ahead], y: last === null ? mean : [last, ...mean], width: 2.4 },
      ],
      uprights: [{ x: found.cut - 0.5, text: "forecast" }, { x: found.cut + mean.length - 0.5, dash: "2 3" }],
      description: `${about.names[d]} and its forecast of ${mean.length} steps`,
    });
  }

  draw() {
    const { found, view, about } = this;
    this.sliders.forEach((s) => s.set());
    const drawn = this.drawing();
    const old = this.place.firstChild;
    // While a line is dragged, what catches the pointer stays.
    if (old && this.dragging) old.replaceChildren(...drawn.svg.childNodes);
    else {
      this.place.replaceChildren(drawn.svg);
      this.catch(drawn.svg);
    }
    this.drawn = { ...drawn, width: this.size.width };
    const mean = found.mean[view.series];
    const truth = mean.map((m, i) => [m, about.values[view.series][found.cut + i]]).filter(([, y]) => y !== null && y !== undefined);
    const rmse = Math.sqrt(truth.reduce((sum, [m, y]) => sum + (m - y) ** 2, 0) / truth.length);
    this.facts_.replaceChildren(
      h("span", null, "last step ", h("b", { text: `${short(mean[mean.length - 1])} ± ${short(found.std[view.series][mean.length - 1], 3)}` })),
      truth.length ? h("span", null, `RMSE on ${count(truth.length, "known row")} `, h("b", { text: short(rmse) })) : "",
      mean.length < view.horizon ? h("span", { class: "filled", text: "exogenous inputs are known up to here" }) : "");
  }

  /** Dragging the upright lines. */
  catch(svg) {
    const at = (e) => {
      const box = svg.getBoundingClientRect();
      return this.drawn.value(((e.clientX - box.left) / box.width) * this.drawn.width);
    };
    svg.classList.add("grab");
    svg.addEventListener("pointerdown", (e) => {
      const x = at(e);
      const end = this.found.cut + this.found.mean[0].length;
      const room = (this.drawn.value(24) - this.drawn.value(0));
      const [toCut, toEnd] = [Math.abs(x - this.found.cut + 0.5), Math.abs(x - end + 0.5)];
      if (Math.min(toCut, toEnd) > room) return;
      this.dragging = toEnd <= toCut ? "horizon" : "cut";
      svg.setPointerCapture(e.pointerId);
      e.preventDefault();
    });
    svg.addEventListener("pointermove", (e) => {
      if (!this.dragging) return;
      const row = Math.round(at(e) + 0.5);
      if (this.dragging === "cut") this.view.cut = clamp(row, this.about.least, this.about.n);
      else this.view.horizon = clamp(row - this.found.cut, 1, this.about.most);
      this.changed();
    });
    const end = () => (this.dragging = null);
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
  }

  async save(kind) {
    if (kind === "csv") {
      const { about, found } = this;
      const names = ["row", ...about.names.flatMap((n) => [`${n}_mean`, `${n}_std`])];
      const rows = found.mean[0].map((_, i) => [found.cut + i, ...about.names.flatMap((_, d) => [found.mean[d][i], found.std[d][i]])]);
      download("forecast.csv", csv(names, rows), "text/csv");
      return;
    }
    const svg = new XMLSerializer().serializeToString(this.drawing().svg);
    if (kind === "svg") download("forecast.svg", svg, "image/svg+xml");
    else download("forecast.png", await toPng(svg), "image/png");
  }

  get tables() {
    return true;
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
    return `${about.model} · ${count(about.n, "row")} of ${about.names.map(plain).join(", ")} · kernel ${about.kernel}`;
  }

  help() {
    return [["Tab, arrow keys", "move the sliders"], ["drag", "move the lines in the chart"]];
  }
}
