// The page of a latent space.

import { card, clamp, count, csv, download, h, latest, plain, say, select, short, toggle } from "./dom.js";
import { MOST_CLASSES, classColour, inOrder, ink, marker, ramp, shapeOf } from "./colour.js";
import { extent } from "./axes.js";
import { readView, writeView } from "./view.js";
import { LatentMap } from "./map.js";
import { Values, looks, picture } from "./value.js";
import { PathCard } from "./path.js";
import { mapFigure, toPng } from "./figure.js";

/** Cells of the ground along each axis. */
const GROUND = 64;
/** Rows that are listed as near. */
const NEAREST = 8;
/** Pins that are kept: more would not stand side by side. */
const MOST_PINS = 12;
const LOOKS = { image: "Image", curve: "Curve", table: "Table" };

export class SpacePage {
  static async open(about, backend) {
    const page = new SpacePage();
    const all = await backend.floats("positions");
    const { n, q, certain } = about;
    const part = (k) => all.subarray(k * n, (k + 1) * n);
    page.mean = Array.from({ length: q }, (_, k) => part(k));
    page.variance = certain ? null : Array.from({ length: q }, (_, k) => part(q + k));
    page.build(about, backend);
    return page;
  }

  build(about, backend) {
    Object.assign(this, { about, backend });
    this.decodes = backend.live || !about.no_decoder;
    this.fields = new Map([about.labels, ...about.extra.filter((c) => !c.numbers)].filter(Boolean).map((c, k) => [k === 0 && about.labels ? "labels" : `words:${c.name}`, c]));
    this.usual = {
      x: about.order[0], y: about.order[1] ?? about.order[0], colour: this.fields.size ? [...this.fields.keys()][0] : "none", zoom: 1, cx: null, cy: null,
      ellipses: false, ground: false, inducing: false, search: "", hidden: [], range: [], pins: [], look: looks(about)[0],
    };
    this.view = readView({ ...this.usual, cx: NaN, cy: NaN });
    if (!Number.isFinite(this.view.cx)) this.view.cx = null;
    if (!Number.isFinite(this.view.cy)) this.view.cy = null;
    this.checkView();
    this.values = new Values(about, this.view.look);
    this.columns = new Map();
    this.decodeAt = latest((x, row) => this.decode(x, row));
    this.groundLater = this.later(() => this.askGround(), 180);
    this.saveLater = this.later(() => writeView(this.view, this.usual), 200);
    const near = latest((x) => this.near(x));
    // Rows are looked for where the pointer rests: what is decoded comes first.
    let rest = 0;
    this.nearLater = (x) => {
      clearTimeout(rest);
      rest = setTimeout(() => near(x), 80);
    };
    this.pinTurn = 0;
    this.map = new LatentMap({
      about, mean: this.mean, variance: this.variance, view: this.view,
      on: {
        hover: (x, row) => this.decodeAt(x, row),
        pin: (x, row) => this.pin(x, row),
        select: (rows) => this.selectRows(rows),
        moved: () => this.moved(),
        name: (row) => this.name(row),
      },
    });
    this.paths = new PathCard({ about, backend, view: this.view, on: { show: (path) => {
      this.map.path = path;
      this.map.draw();
    } } });
    this.root = h("div", { class: "work" }, this.stage(), this.side());
    this.recolour();
    this.drawPins();
    this.drop();
  }

  /** What the address says may not fit this model. */
  checkView() {
    const { q } = this.about;
    const view = this.view;
    for (const axis of ["x", "y"]) if (!(Number.isInteger(view[axis]) && view[axis] >= 0 && view[axis] < q)) view[axis] = this.usual[axis];
    if (q > 1 && view.x === view.y) view.y = this.about.order.find((k) => k !== view.x);
    view.zoom = clamp(view.zoom, 0.2, 2000);
    view.pins = view.pins.filter((p) => p.x.length === q && (p.row === null || (Number.isInteger(p.row) && p.row >= 0 && p.row < this.about.n))).slice(0, MOST_PINS);
    if (!looks(this.about).includes(view.look)) view.look = this.usual.look;
    if (!this.choices().some((c) => c[0] === view.colour || c.choices?.some((d) => d[0] === view.colour))) view.colour = this.usual.colour;
  }

  later(work, wait) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(work, wait);
    };
  }

  moved() {
    this.saveLater();
    if (this.view.ground) this.groundLater();
  }

  name(row) {
    const label = [...this.fields.values()][0]?.of[row];
    return label ? `row ${row + 1}, ${label}` : `row ${row + 1}`;
  }

  /* The map and what stands above it. */

  choices() {
    const { about } = this;
    const fields = [...this.fields].map(([key, c]) => [key, c.name]);
    const numbers = about.extra.filter((c) => c.numbers).map((c) => [`extra:${c.name}`, c.name]);
    const data = about.no_rows ? [] : [{ group: "columns", choices: about.columns.map((c) => [`data:${c}`, c]) }];
    return [["none", "nothing"], ...fields, ...numbers, ...(about.certain ? [] : [["uncertainty", "uncertainty of the position"]]), ["outlier", "outlier score"], ...data];
  }

  stage() {
    const { about, view } = this;
    const total = about.relevance.reduce((a, b) => a + b, 0);
    const dims = about.order.map((k) => [k, `${k + 1} · ${total > 0 ? ((100 * about.relevance[k]) / total).toFixed(about.relevance[k] / total < 0.01 ? 1 : 0) : 0} %`]);
    const change = (axis, other) => (v) => {
      const before = view[axis];
      view[axis] = Number(v);
      if (about.q > 1 && view[axis] === view[other]) {
        view[other] = before;
        this.lists[other].querySelector("select").value = String(before);
      }
      Object.assign(view, { zoom: 1, cx: null, cy: null });
      this.map.dimensions();
      this.map.draw();
      this.recolour();
      this.moved();
    };
    this.lists = { x: select("Across · relevance", dims, view.x, change("x", "y"), "dims"), y: select("Up · relevance", dims, view.y, change("y", "x"), "dims") };
    this.search = h("input", { type: "search", placeholder: "label, id or row number", value: view.search, oninput: () => {
      view.search = this.search.value;
      this.paint();
      this.saveLater();
    }, onkeydown: (e) => e.key === "Enter" && this.nextFound() });
    this.found = h("span", { class: "small soft" });
    this.lassoButton = toggle("Lasso", false, (on) => {
      this.map.lassoing = on;
    }, "Draw around points to select them (or hold Shift)");
    const flag = (name, text, title) => toggle(text, view[name], (on) => {
      view[name] = on;
      if (name === "inducing") this.map.dimensions();
      if (on && name === "ground") this.askGround();
      this.map.draw();
      this.moved();
    }, title);
    const chips = [
      this.variance && flag("ellipses", "Ellipses", "One standard deviation of each position"),
      this.decodes && about.q > 1 && flag("ground", "Uncertain ground", "Darker where predictions are less certain"),
      about.inducing && flag("inducing", "Inducing inputs"),
      this.lassoButton,
    ];
    this.legend = h("div", { class: "legend", role: "group", "aria-label": "legend and filter" });
    return h("div", { class: "stage" },
      h("div", { class: "bar" }, this.lists.x, about.q > 1 && this.lists.y,
        select("Colour", this.choices(), view.colour, (v) => {
          Object.assign(view, { colour: v, hidden: [], range: [] });
          this.recolour();
          this.saveLater();
        }, "colour"),
        h("label", { class: "field search" }, h("span", null, "Search ", this.found), this.search)),
      h("div", { class: "chips" }, chips), this.map.root, this.legend);
  }

  async floats(name) {
    if (!this.columns.has(name)) this.columns.set(name, this.backend.floats("column", { name }));
    return this.columns.get(name);
  }

  /** Works out what points are coloured by. */
  async recolour() {
    const { view, about } = this;
    const turn = (this.turn = (this.turn || 0) + 1);
    let shown = { kind: "none" };
    try {
      if (this.fields.has(view.colour)) shown = this.classes(this.fields.get(view.colour));
      else if (view.colour === "uncertainty") {
        const [a, b] = [this.variance[view.x], this.variance[view.y]];
        shown = { kind: "numbers", values: a.map((v, i) => Math.sqrt((v + b[i]) / 2)), title: "standard deviation of the position" };
      } else if (view.colour !== "none") {
        const title = view.colour === "outlier" ? "outlier score" : view.colour.slice(view.colour.indexOf(":") + 1);
        shown = { kind: "numbers", values: await this.floats(view.colour), title };
      }
    } catch (error) {
      say(error.message);
      this.legend.replaceChildren(h("p", { class: "warning", text: error.message }));
    }
    if (turn !== this.turn) return;
    if (shown.kind === "numbers") {
      // A few extreme values do not take the colours from the rest.
      const sorted = Float32Array.from(shown.values.filter(Number.isFinite)).sort();
      const part = (p) => sorted[Math.floor(p * (sorted.length - 1))] ?? 0;
      const [lo, hi] = [part(0.005), part(0.995)];
      Object.assign(shown, hi > lo ? { lo, hi } : { lo: lo - 0.5, hi: hi + 0.5 }, { bounds: extent(sorted) });
    }
    this.shown = shown;
    this.drawLegend();
    this.paint();
    if (about.n && !this.painted) {
      this.painted = true;
      performance.mark("painted");
    }
  }

  classes(of) {
    const sizes = new Map();
    for (const name of of.of) sizes.set(name, (sizes.get(name) || 0) + 1);
    let names = inOrder(sizes.keys());
    if (names.length > MOST_CLASSES) {
      const large = new Set([...names].sort((a, b) => sizes.get(b) - sizes.get(a)).slice(0, MOST_CLASSES - 1));
      names = [...names.filter((n) => large.has(n)), ...names.filter((n) => !large.has(n))];
    }
    const coloured = names.length > MOST_CLASSES ? MOST_CLASSES - 1 : names.length;
    const index = new Map(names.map((n, k) => [n, k]));
    return { kind: "classes", title: of.name, names, sizes, code: Int32Array.from(of.of, (n) => index.get(n)), colour: (k) => (k < coloured ? k : -1) };
  }

  /** Puts colours, filters and the search on the points. */
  paint() {
    const { about, view, shown } = this;
    if (!shown) return;
    const n = about.n;
    const [colours, shapes] = [new Uint8Array(4 * n), new Uint8Array(n)];
    const one = ink().accent;
    const rgbOf = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
    const palette = shown.kind === "classes" ? shown.names.map((_, k) => rgbOf(classColour(shown.colour(k)))) : null;
    const hidden = shown.kind === "classes" ? shown.names.map((name) => view.hidden.includes(name)) : null;
    const [from, to] = view.range.length === 2 ? view.range : [-Infinity, Infinity];
    const text = view.search.trim().toLowerCase();
    const matches = text ? this.matching(text) : null;
    let visible = 0;
    for (let i = 0; i < n; i++) {
      let [colour, alpha] = [null, n > 20000 ? 170 : 235];
      if (shown.kind === "classes") {
        colour = palette[shown.code[i]];
        shapes[i] = shapeOf(shown.colour(shown.code[i]));
        if (hidden[shown.code[i]]) alpha = 0;
      } else if (shown.kind === "numbers") {
        const v = shown.values[i];
        colour = Number.isFinite(v) ? ramp((v - shown.lo) / (shown.hi - shown.lo)) : rgbOf(classColour(-1));
        if (!(v >= from && v <= to) && view.range.length) alpha = 0;
      } else colour = rgbOf(one);
      if (alpha && matches && !matches[i]) alpha = 34;
      if (alpha) visible++;
      colours.set([colour[0], colour[1], colour[2], alpha], 4 * i);
    }
    this.found.textContent = matches ? `${matches.reduce((a, b) => a + b, 0).toLocaleString("en")} found` : visible < n ? `${visible.toLocaleString("en")} of ${n.toLocaleString("en")} shown` : "";
    this.map.look(colours, shapes);
    this.matches = matches;
  }

  matching(text) {
    const lists = [...this.fields.values()].map((c) => c.of);
    const number = /^\d+$/.test(text) ? Number(text) - 1 : -1;
    return Uint8Array.from({ length: this.about.n }, (_, i) => (i === number || lists.some((l) => l[i].toLowerCase().includes(text)) ? 1 : 0));
  }

  /** Looks at the next row that the search found. */
  nextFound() {
    if (!this.matches) return;
    const n = this.about.n;
    for (let k = 1; k <= n; k++) {
      const i = ((this.lastFound ?? -1) + k) % n;
      if (!this.matches[i]) continue;
      this.lastFound = i;
      this.lookAt(i);
      return;
    }
    say("nothing found");
  }

  lookAt(i) {
    const plane = [this.mean[this.view.x][i], this.about.q > 1 ? this.mean[this.view.y][i] : 0];
    const [[x0, x1], [y0, y1]] = this.map.window;
    if (plane[0] < x0 || plane[0] > x1 || plane[1] < y0 || plane[1] > y1) [this.view.cx, this.view.cy] = plane;
    this.map.cursor = { plane, row: i };
    this.map.draw();
    this.moved();
    this.decodeAt(this.mean.map((m) => m[i]), i);
  }

  drawLegend() {
    const { shown, view } = this;
    this.legend.replaceChildren();
    if (shown.kind === "classes") {
      const most = 60;
      const buttons = shown.names.slice(0, most).map((name, k) => {
        const canvas = h("canvas", { width: 32, height: 32, "aria-hidden": "true" });
        const c = canvas.getContext("2d");
        c.fillStyle = classColour(shown.colour(k));
        c.fill(new Path2D(marker(shapeOf(shown.colour(k)), 16, 16, 10)));
        const label = plain(name) || "(no label)";
        return h("button", { type: "button", "aria-pressed": String(!view.hidden.includes(name)), title: `${label}: ${count(shown.sizes.get(name), "row")}. Click to hide or show; double-click for this one alone.`, onclick: (e) => {
          const was = view.hidden.includes(name);
          view.hidden = was ? view.hidden.filter((v) => v !== name) : [...view.hidden, name];
          e.currentTarget.setAttribute("aria-pressed", String(was));
          this.paint();
          this.saveLater();
        }, ondblclick: () => {
          view.hidden = shown.names.filter((other) => other !== name);
          this.drawLegend();
          this.paint();
          this.saveLater();
        } }, canvas, h("span", { text: label }));
      });
      const rest = shown.names.length > most && h("span", { class: "small soft", text: `and ${shown.names.length - most} more` });
      const all = h("button", { type: "button", class: "quiet", text: "all", title: "Show every class", onclick: () => {
        view.hidden = [];
        this.drawLegend();
        this.paint();
        this.saveLater();
      } });
      this.legend.append(h("span", { class: "small soft", text: `${plain(shown.title)}:` }), ...buttons, rest || "", shown.names.length > 1 ? all : "");
    } else if (shown.kind === "numbers") {
      const canvas = h("canvas", { width: 64, height: 1, role: "img", "aria-label": "colour scale" });
      const c = canvas.getContext("2d");
      for (let i = 0; i < 64; i++) {
        c.fillStyle = `rgb(${ramp(i / 63).join(" ")})`;
        c.fillRect(i, 0, 1, 1);
      }
      const [lo, hi] = shown.bounds;
      const slider = (k, text) => h("input", { type: "range", min: 0, max: 1000, step: 1, value: view.range.length ? (1000 * (view.range[k] - lo)) / (hi - lo || 1) : 1000 * k, "aria-label": text, title: text, oninput: () => {
        const [a, b] = sliders.map((s, j) => (Number(s.value) === 1000 * j ? [lo, hi][j] : lo + ((hi - lo) * s.value) / 1000));
        view.range = a <= lo && b >= hi ? [] : [Math.min(a, b), Math.max(a, b)];
        this.paint();
        this.saveLater();
      } });
      const sliders = [slider(0, "show from"), slider(1, "show to")];
      this.legend.append(h("div", { class: "scale" }, h("span", { text: short(shown.lo, 3) }), canvas, h("span", null, short(shown.hi, 3), " ", h("span", { class: "soft", text: plain(shown.title) })), h("div", { class: "ranges" }, sliders)));
    }
  }

  async askGround() {
    if (!this.decodes || this.about.q < 2 || !this.map.inner) return;
    const [x, y] = this.map.window;
    const what = { dims: [this.view.x, this.view.y], x, y, columns: GROUND, rows: GROUND, at: this.map.centres };
    try {
      const values = await this.backend.floats("ground", what);
      if (what.dims[0] === this.view.x && what.dims[1] === this.view.y) this.map.setGround(values, what);
    } catch (error) {
      say(error.message);
    }
  }

  /* What stands beside the map. */

  side() {
    const { about } = this;
    const tabs = looks(about);
    const look = tabs.length > 1 && h("div", { class: "chips" }, tabs.map((k) => h("button", { type: "button", class: "quiet", "data-look": k, text: LOOKS[k], "aria-pressed": String(k === this.view.look), onclick: () => this.setLook(k) })));
    this.where = h("div", { class: "facts" }, h("span", { text: "Move over the map: what the model expects there appears here." }));
    this.lookTabs = look;
    this.pinList = h("div", { class: "pins" });
    this.pinNote = h("p", { class: "note", text: "Click the map to pin positions side by side." });
    this.pinTools = h("button", { type: "button", class: "quiet", text: "Clear", onclick: () => this.setPins([]) });
    this.nearList = h("div", { class: "list" }, h("p", { class: "note", text: "Nothing looked at yet." }));
    this.selection = h("div", null, h("p", { class: "note", text: "Choose Lasso, or hold Shift, and draw around points." }));
    this.newRows = h("div");
    const pick = h("label", { class: "file" }, "Choose a CSV", h("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", "aria-label": "CSV of new rows", onchange: (e) => e.target.files[0] && this.place(e.target.files[0]) }));
    const decoded = this.decodes
      ? [this.where, this.values.root]
      : [h("p", { class: "warning", text: `Positions are not decoded in this file: ${about.no_decoder}. \`latentgp explore\` does it.` })];
    return h("aside", { class: "side", "aria-label": "details" },
      card("Under the pointer", look, decoded),
      card("Pinned", this.pinTools, this.pinNote, this.pinList),
      this.paths.root,
      card("Nearest rows", null, this.nearList),
      card("New rows", this.backend.live && pick, h("p", { class: "note", text: this.backend.live ? "Drop a CSV onto the page: its rows are placed on the map with their uncertainty and an outlier score, and their missing cells are filled." : "Placing new rows needs the server: `latentgp explore` does it." }), this.newRows),
      card("Selection", null, this.selection));
  }

  setLook(look) {
    this.view.look = look;
    for (const tab of this.lookTabs.querySelectorAll("button")) tab.setAttribute("aria-pressed", String(tab.dataset.look === look));
    this.values.setLook(look);
    this.paths.setLook(look);
    this.drawPins();
    this.saveLater();
  }

  async decode(x, row) {
    if (!this.decodes) return this.nearLater(x);
    const begun = performance.now();
    const there = await this.backend.ask("decode", { x: [x] });
    const [mean, std] = [there.mean[0], there.std[0]];
    this.values.show(mean, std);
    const unit = Math.sqrt(std.reduce((sum, v, j) => sum + (v / this.about.scale[j]) ** 2, 0) / std.length);
    const place = this.about.q > 1 ? [this.view.x, this.view.y] : [this.view.x];
    this.where.replaceChildren(
      h("span", null, "position ", h("b", { text: `(${place.map((k) => short(x[k], 3)).join(", ")})` })),
      h("span", null, "uncertainty ", h("b", { text: short(unit, 3) })),
      row === null ? "" : h("span", null, h("b", { text: plain(this.name(row)) })));
    const times = (window.decodeTimes ??= []);
    times.push(performance.now() - begun);
    if (times.length > 500) times.shift();
    this.nearLater(x);
  }

  async near(x) {
    const rows = this.map.nearest(x, NEAREST);
    if (this.nearRows?.length === rows.length && rows.every((r, k) => r === this.nearRows[k])) return;
    this.nearRows = rows;
    const cells = this.about.no_rows ? null : await this.backend.ask("rows", { rows });
    const filled = new Map((cells?.filled || []).map(([i, j, v, sd]) => [`${i} ${j}`, [v, sd]]));
    const items = rows.map((i, k) => {
      const score = this.outliers && `outlier score ${short(this.outliers[i], 3)}`;
      const about = cells && this.about.d <= 6 ? cells.values[k].map((v, j) => (v === null ? `[${short(filled.get(`${k} ${j}`)?.[0], 3)}]` : short(v, 3))).join("  ") : "";
      const image = cells && this.about.images && picture(this.about.images, cells.values[k].map((v, j) => v ?? filled.get(`${k} ${j}`)?.[0] ?? null), this.about.range);
      return h("li", null, h("button", { type: "button", onclick: () => this.showRow(i, cells?.values[k], filled, k) }, image || "", h("span", { class: "grow", text: plain(this.name(i)) }), h("span", { class: "small soft", text: about || score || "" })));
    });
    this.nearList.replaceChildren(h("ol", null, items));
  }

  /** The cells of a training row; those that were missing as the model fills them. */
  async showRow(i, values, filled, at) {
    this.lookAt(i);
    if (!values) return;
    const [mean, std, holes] = [[], [], []];
    values.forEach((v, j) => {
      const fill = filled.get(`${at} ${j}`);
      mean[j] = v ?? fill?.[0] ?? NaN;
      std[j] = v === null ? fill?.[1] ?? 0 : 0;
      holes[j] = v === null;
    });
    this.showCells(this.name(i), mean, std, holes);
  }

  showCells(name, mean, std, holes) {
    this.rowView ??= new Values(this.about, "table");
    this.rowView.show(mean, std, holes);
    this.rowHead ??= h("p", { class: "small" });
    const missing = holes.filter(Boolean).length;
    this.rowHead.textContent = `${plain(name)}${missing ? `: ${count(missing, "missing cell")} filled (coloured, with deviations)` : ""}`;
    this.nearList.append(this.rowHead, this.rowView.root);
    this.rowHead.scrollIntoView({ block: "nearest" });
  }

  /* Pins. */

  pin(x, row) {
    const pins = this.view.pins;
    const same = pins.findIndex((p) => row !== null && p.row === row);
    this.setPins(same < 0 ? [...pins, { x: [...x], row }].slice(-MOST_PINS) : [...pins.slice(0, same), ...pins.slice(same + 1)]);
    say(same < 0 ? "pinned" : "unpinned");
  }

  setPins(pins) {
    this.view.pins = pins;
    this.drawPins();
    this.map.draw();
    this.paths.changed();
    this.saveLater();
  }

  async drawPins() {
    const { view } = this;
    this.pinNote.hidden = view.pins.length > 0;
    this.pinTools.hidden = !view.pins.length;
    const turn = (this.pinTurn = (this.pinTurn || 0) + 1);
    const there = view.pins.length && this.decodes ? await this.backend.ask("decode", { x: view.pins.map((p) => p.x) }).catch(() => null) : null;
    if (turn !== this.pinTurn) return;
    const close = (pin, k) => h("button", { type: "button", class: "quiet", text: "×", "aria-label": `unpin ${k + 1}`, onclick: () => this.setPins(view.pins.filter((p) => p !== pin)) });
    const places = this.about.q > 1 ? [view.x, view.y] : [view.x];
    const name = (pin) => plain(pin.row === null ? `(${places.map((d) => short(pin.x[d], 2)).join(", ")})` : this.name(pin.row));
    if (there && view.look === "table" && view.pins.length) {
      const head = view.pins.map((pin, k) => h("th", { scope: "col", class: "pin", title: name(pin) }, `${k + 1}`, close(pin, k)));
      const rows = this.about.columns.map((column, j) => h("tr", null, h("th", { scope: "row", text: plain(column), title: plain(column) }), there.mean.map((m, k) => h("td", { title: `± ${short(there.std[k][j], 3)}`, text: short(m[j]) }))));
      this.pinList.replaceChildren(h("div", { class: "values", tabindex: "0", role: "region", "aria-label": "pinned positions side by side" }, h("table", null, h("thead", null, h("tr", null, h("th", { text: "column" }), head)), h("tbody", null, rows))));
      return;
    }
    this.pinList.replaceChildren(...view.pins.map((pin, k) => {
      const values = there && new Values(this.about, view.look, { pixels: 84, deviations: false });
      if (values) values.show(there.mean[k], there.std[k]);
      return h("div", { class: view.look === "image" ? "pin" : "pin wide" }, h("div", { class: "head" }, h("b", { text: `${k + 1} · ${name(pin)}`, title: name(pin) }), close(pin, k)), values ? values.root : "");
    }));
  }

  /* New rows. */

  drop() {
    if (!this.backend.live) return;
    const over = (on) => this.map.root.classList.toggle("drop", on);
    document.addEventListener("dragover", (e) => {
      e.preventDefault();
      over(true);
    });
    document.addEventListener("dragleave", (e) => !e.relatedTarget && over(false));
    document.addEventListener("drop", (e) => {
      e.preventDefault();
      over(false);
      if (e.dataTransfer.files[0]) this.place(e.dataTransfer.files[0]);
    });
  }

  async place(file) {
    this.newRows.replaceChildren(h("p", { class: "note", text: `Placing the rows of ${plain(file.name)}…` }));
    try {
      if (file.size > 7 << 20) throw new Error("This file is larger than 7 MiB; `latentgp transform` places any number of rows.");
      const found = await this.backend.ask("place", { name: file.name, text: await file.text() });
      const scores = Float32Array.from(await this.floats("outlier")).sort();
      const rank = (v) => {
        let [lo, hi] = [0, scores.length];
        while (lo < hi) {
          const mid = (lo + hi) >> 1;
          if (scores[mid] < v) lo = mid + 1;
          else hi = mid;
        }
        return (100 * lo) / scores.length;
      };
      this.map.placed = found.mean.map((x, i) => ({ x, var: found.var[i] }));
      this.map.draw();
      const items = found.mean.map((x, i) => {
        const missing = found.given[i].filter((g) => !g).length;
        const usual = rank(found.outlier[i]);
        const button = h("button", { type: "button", onclick: () => {
          this.map.placed.forEach((p, k) => (p.current = k === i));
          for (const b of this.newRows.querySelectorAll("button")) b.setAttribute("aria-current", String(b === button));
          this.map.cursor = { plane: [x[this.view.x], this.about.q > 1 ? x[this.view.y] : 0], row: null };
          this.map.draw();
          this.decodeAt(x, null);
          view.show(found.values[i], found.std[i], found.given[i].map((g) => !g));
          head.textContent = missing ? `Row ${i + 1}: ${count(missing, "missing cell")} filled (coloured, with deviations)` : `Row ${i + 1}`;
          detail.hidden = false;
        } }, h("span", { class: "grow", text: plain(found.names[i].trim() || `row ${i + 1}`) }), missing ? h("span", { class: "small filled", text: `${missing} filled` }) : "",
          h("span", { class: "small soft", title: `${short(usual, 3)} % of the training rows have a lower score`, text: found.outlier[i] === null ? "no cell is known" : `score ${short(found.outlier[i], 3)} · above ${usual.toFixed(0)} %` }));
        return h("li", null, button);
      });
      const [view, head] = [new Values(this.about, "table"), h("p", { class: "small" })];
      const detail = h("div", { hidden: true }, head, view.root);
      const save = h("button", { type: "button", class: "quiet", text: "Filled rows as CSV", onclick: () => download("filled.csv", csv(this.about.columns, found.values), "text/csv") });
      const clear = h("button", { type: "button", class: "quiet", text: "Remove", onclick: () => {
        this.map.placed = [];
        this.map.draw();
        this.newRows.replaceChildren();
      } });
      this.newRows.replaceChildren(h("div", { class: "row" }, h("span", { class: "small", text: `${count(found.mean.length, "row")} of ${plain(file.name)}` }), save, clear), found.by_name ? "" : h("p", { class: "note", text: "The columns have no names: they were taken in order." }), h("div", { class: "list" }, h("ol", null, items)), detail);
      say(`${count(found.mean.length, "row")} placed`);
    } catch (error) {
      this.newRows.replaceChildren(h("p", { class: "warning", role: "alert", text: plain(error.message) }));
    }
  }

  /* Selected rows. */

  async selectRows(rows) {
    this.map.selected = rows && rows.length ? rows : null;
    this.map.draw();
    if (!this.map.selected) {
      this.selection.replaceChildren(h("p", { class: "note", text: "Choose Lasso, or hold Shift, and draw around points." }));
      return;
    }
    const labels = this.about.labels;
    const sizes = new Map();
    if (labels) for (const i of rows) sizes.set(labels.of[i], (sizes.get(labels.of[i]) || 0) + 1);
    const most = [...sizes].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([name, k]) => `${plain(name) || "(no label)"} ${k}`);
    this.selection.replaceChildren(
      h("div", { class: "row" }, h("b", { text: `${count(rows.length, "row")} selected` }),
        h("button", { type: "button", text: "Save as CSV", onclick: () => this.saveRows(rows) }),
        h("button", { type: "button", class: "quiet", text: "Clear", onclick: () => this.selectRows(null) })),
      most.length ? h("p", { class: "note", text: most.join(" · ") }) : "");
    say(`${count(rows.length, "row")} selected`);
  }

  async saveRows(rows) {
    const { about } = this;
    try {
      const cells = about.no_rows ? null : (await this.backend.ask("rows", { rows })).values;
      const dims = this.mean.map((_, k) => k);
      const fields = [...this.fields.values()];
      const names = ["row", ...fields.map((f) => f.name), ...dims.map((k) => `latent${k + 1}`), ...(this.variance ? dims.map((k) => `latent${k + 1}_var`) : []), ...(cells ? about.columns : [])];
      const lines = rows.map((i, at) => [i, ...fields.map((f) => f.of[i]), ...dims.map((k) => this.mean[k][i]), ...(this.variance ? dims.map((k) => this.variance[k][i]) : []), ...(cells ? cells[at] : [])]);
      download("rows.csv", csv(names, lines), "text/csv");
    } catch (error) {
      this.selection.append(h("p", { class: "warning", text: plain(error.message) }));
    }
  }

  /* What the frame asks for. */

  figure() {
    const { shown } = this;
    const legend = shown.kind === "classes"
      ? { classes: shown.names.filter((n) => !this.view.hidden.includes(n)).map((name) => [shown.colour(shown.names.indexOf(name)), name || "(no label)"]), shape: shapeOf }
      : shown.kind === "numbers" ? { lo: short(shown.lo, 3), hi: short(shown.hi, 3), title: shown.title } : null;
    return mapFigure(this.map, legend, this.about.title);
  }

  async save(kind) {
    const svg = this.figure();
    if (kind === "svg") download("map.svg", svg, "image/svg+xml");
    else download("map.png", await toPng(svg), "image/png");
  }

  themed() {
    this.drawLegend();
    this.paint();
    this.values.setLook(this.view.look);
    this.paths.setLook(this.view.look);
    this.drawPins();
    if (this.view.ground) this.askGround();
  }

  key(e) {
    if (e.key === "l") this.lassoButton.click();
    else if (e.key === "m") this.map.over.focus();
    else return false;
    return true;
  }

  started() {
    if (this.view.ground) this.askGround();
    if (this.view.pins.length > 1) this.paths.changed();
    this.floats("outlier").then((v) => (this.outliers = v), () => {});
  }

  facts() {
    const { about } = this;
    return `${about.model} · ${count(about.n, "row")} × ${count(about.d, "column")} · ${count(about.q, "latent dimension")} · kernel ${about.kernel}`;
  }

  help() {
    return [["arrow keys", "move over the map (with Shift: faster)"], ["Enter", "pin, or unpin a row"], ["+ − 0", "zoom in, out, show all"], ["drag, wheel", "move and zoom; two fingers on a screen"], ["l, or Shift and drag", "lasso"], ["Esc", "drop the selection"], ["m", "to the map"], ["/", "search; Enter goes to the next that is found"]];
  }
}
