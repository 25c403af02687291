// The latent map: points, what stands around them, and the ways to move and to choose.

import { clamp, h, onceAFrame, plain, say } from "./dom.js";
import { ink, isDark } from "./colour.js";
import { Scatter } from "./scatter.js";
import { extent, roomy, tickText, ticks } from "./axes.js";

const MARGIN = { left: 52, right: 12, top: 12, bottom: 38 };
/** Most ellipses that are drawn: more hide each other. */
const MOST_ELLIPSES = 4000;
/** Points beyond this number are not drawn anew while the map is dragged, but moved as they are. */
const MANY = 5000;
/** So many pixels around the map are drawn too, to be there when it moves. */
const AROUND = 140;
/** How near the pointer is to a point that it means, in pixels. */
const NEAR = 9;

export class LatentMap {
  /** `on` has hover(position, row), pin(position, row), select(rows), moved(). */
  constructor({ about, mean, variance, view, on }) {
    Object.assign(this, { about, mean, variance, view, on });
    this.ground = null;
    this.path = null;
    this.placed = [];
    this.selected = null;
    this.lasso = null;
    this.lassoing = false;
    this.cursor = null;
    this.pointers = new Map();
    this.under = h("canvas");
    const points = h("canvas");
    this.over = h("canvas", { class: "over", tabindex: "0", role: "application", "aria-label": "Latent map. Arrow keys move the cursor, Enter pins, plus and minus zoom, 0 shows all.", "aria-describedby": "status" });
    this.hint = h("div", { class: "hint" });
    this.clip = h("div", { class: "clip" }, this.under, points);
    this.root = h("div", { class: "plot" }, this.clip, this.over, this.hint,
      h("div", { class: "zoom" }, this.button("+", "Zoom in", () => this.zoomAt(1.5)), this.button("−", "Zoom out", () => this.zoomAt(1 / 1.5)), this.button("⤢", "Show all", () => this.all())));
    this.scatter = new Scatter(points);
    this.scatter.again = () => this.draw();
    this.draw = onceAFrame(() => this.drawNow());
    this.listen();
    this.dimensions();
    new ResizeObserver(() => this.resized()).observe(this.root);
  }

  button(text, title, act) {
    return h("button", { type: "button", text, title, "aria-label": title, onclick: act });
  }

  get n() {
    return this.about.n;
  }

  /** Takes up the dimensions that the view names. */
  dimensions() {
    this.x = this.mean[this.view.x];
    this.y = this.about.q > 1 ? this.mean[this.view.y] : new Float32Array(this.n);
    const inducing = (k) => (this.view.inducing && this.about.inducing ? this.about.inducing.map((z) => z[k]) : []);
    // Far inducing inputs do not stretch the map.
    const limits = (values, k) => {
      const [lo, hi] = extent(values);
      const [zlo, zhi] = inducing(k).length ? extent(inducing(k)) : [lo, hi];
      const room = 0.15 * (hi - lo);
      return roomy([Math.max(Math.min(zlo, lo), lo - room), Math.min(Math.max(zhi, hi), hi + room)]);
    };
    this.limits = [limits(this.x, this.view.x), this.about.q > 1 ? limits(this.y, this.view.y) : [-1, 1]];
    this.middle = this.limits.map(([lo, hi]) => (lo + hi) / 2);
    this.scatter.setPoints(this.x, this.y);
    this.drawn = null;
    this.ground = null;
    this.centres = this.mean.map((m) => m.reduce((sum, v) => sum + v, 0) / m.length);
  }

  look(colours, shapes) {
    this.scatter.setLook(colours, shapes);
    this.drawn = null;
    this.draw();
  }

  resized() {
    const box = { width: this.root.clientWidth, height: this.root.clientHeight };
    if (!box.width) return;
    const inner = { w: box.width - MARGIN.left - MARGIN.right, h: box.height - MARGIN.top - MARGIN.bottom };
    Object.assign(this, { width: box.width, height: box.height, inner });
    Object.assign(this.clip.style, { left: `${MARGIN.left}px`, top: `${MARGIN.top}px`, width: `${inner.w}px`, height: `${inner.h}px` });
    this.around = this.n > MANY ? AROUND : 0;
    const side = `-${this.around}px`;
    Object.assign(this.scatter.canvas.style, { left: side, top: side, width: `${inner.w + 2 * this.around}px`, height: `${inner.h + 2 * this.around}px` });
    this.drawn = null;
    this.draw();
    this.on.moved();
  }

  /** Pixels a unit. */
  get scale() {
    return this.limits.map(([lo, hi], k) => ((k ? this.inner.h : this.inner.w) / (hi - lo)) * this.view.zoom);
  }

  get centre() {
    return [this.view.cx ?? this.middle[0], this.view.cy ?? this.middle[1]];
  }

  toPixels(x, y) {
    const [c, k] = [this.centre, this.scale];
    return [MARGIN.left + this.inner.w / 2 + (x - c[0]) * k[0], MARGIN.top + this.inner.h / 2 - (y - c[1]) * k[1]];
  }

  toPlane(px, py) {
    const [c, k] = [this.centre, this.scale];
    return [c[0] + (px - MARGIN.left - this.inner.w / 2) / k[0], c[1] - (py - MARGIN.top - this.inner.h / 2) / k[1]];
  }

  /** What is seen, [from, to] of each axis. */
  get window() {
    const [a, b] = [this.toPlane(MARGIN.left, MARGIN.top + this.inner.h), this.toPlane(MARGIN.left + this.inner.w, MARGIN.top)];
    return [[a[0], b[0]], [a[1], b[1]]];
  }

  /** The full position of a point of the plane; the other dimensions are at their means, or those of a row. */
  position([x, y], row = null) {
    const full = this.centres.map((c, k) => (row === null ? c : this.mean[k][row]));
    full[this.view.x] = x;
    if (this.about.q > 1) full[this.view.y] = y;
    return full;
  }

  get size() {
    const usual = this.n <= 300 ? 10 : this.n <= 2000 ? 8 : this.n <= 10000 ? 6 : this.n <= 40000 ? 4.5 : 3.4;
    return Math.min(12, usual * this.view.zoom ** 0.25);
  }

  /** The point that is shown nearest to a pixel, or null. */
  at(px, py, reach = NEAR) {
    const [x, y] = this.toPlane(px, py);
    const k = this.scale;
    const colours = this.scatter.colours;
    let [best, found] = [reach * reach, null];
    for (let i = 0; i < this.n; i++) {
      const dx = (this.x[i] - x) * k[0];
      if (dx > reach || dx < -reach) continue;
      const dy = (this.y[i] - y) * k[1];
      const far = dx * dx + dy * dy;
      if (far < best && colours[4 * i + 3]) [best, found] = [far, i];
    }
    return found;
  }

  /** The rows nearest to a position in units of relevance. */
  nearest(position, count) {
    const most = Math.max(...this.about.relevance);
    const weights = this.about.relevance.map((r) => (most > 0 ? r / most : 1));
    const best = [];
    for (let i = 0; i < this.n; i++) {
      let far = 0;
      for (let k = 0; k < weights.length; k++) far += weights[k] * (this.mean[k][i] - position[k]) ** 2;
      if (best.length < count || far < best[best.length - 1][0]) {
        let at = best.length;
        while (at > 0 && best[at - 1][0] > far) at--;
        best.splice(at, 0, [far, i]);
        if (best.length > count) best.pop();
      }
    }
    return best.map(([, i]) => i);
  }

  drawNow() {
    if (!this.inner || this.inner.w < 10) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const colours = ink();
    const { w, h: high } = this.inner;
    this.drawPoints(ratio, colours);
    this.drawGround(ratio);
    const canvas = this.over;
    const [cw, ch] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== cw || canvas.height !== ch) [canvas.width, canvas.height] = [cw, ch];
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.drawAxes(c, colours);
    c.save();
    c.beginPath();
    c.rect(MARGIN.left, MARGIN.top, w, high);
    c.clip();
    this.drawEllipses(c);
    this.drawInducing(c, colours);
    this.drawSelected(c, colours);
    this.drawPath(c, colours);
    this.drawPlaced(c, colours);
    this.drawPins(c, colours);
    this.drawCursor(c, colours);
    c.restore();
  }

  drawPoints(ratio, colours) {
    const { w, h: high } = this.inner;
    const [centre, scale, around] = [this.centre, this.scale, this.around];
    const { style } = this.scatter.canvas;
    if (this.drawn && this.dragging && around && this.drawn.zoom === this.view.zoom) {
      const [dx, dy] = [(this.drawn.centre[0] - centre[0]) * scale[0], (centre[1] - this.drawn.centre[1]) * scale[1]];
      if (Math.abs(dx) < around && Math.abs(dy) < around) {
        style.transform = `translate(${dx}px, ${dy}px)`;
        return;
      }
    }
    style.transform = "";
    this.scatter.draw({ width: w + 2 * around, height: high + 2 * around, centre, scale, size: this.size, rim: colours.rim, ratio });
    this.drawn = { centre, zoom: this.view.zoom };
  }

  drawGround(ratio) {
    const { w, h: high } = this.inner;
    const c = this.under.getContext("2d");
    const shown = this.ground && this.view.ground;
    if (!shown && !this.grounded) return;
    this.grounded = shown;
    [this.under.width, this.under.height] = [Math.round(w * ratio), Math.round(high * ratio)];
    if (!shown) return;
    const { canvas, x, y, columns, rows } = this.ground;
    const [left, bottom] = this.toPixels(x[0], y[0]);
    const [right, top] = this.toPixels(x[1], y[1]);
    // The outermost cells are centred on the ends.
    const [dx, dy] = [(right - left) / (columns - 1) / 2, (bottom - top) / (rows - 1) / 2];
    c.imageSmoothingEnabled = true;
    c.imageSmoothingQuality = "high";
    c.setTransform(ratio, 0, 0, ratio, -MARGIN.left * ratio, -MARGIN.top * ratio);
    c.drawImage(canvas, left - dx, top - dy, right - left + 2 * dx, bottom - top + 2 * dy);
  }

  /** Takes the predictive variance on a grid. */
  setGround(values, { x, y, columns, rows }) {
    const canvas = h("canvas", { width: columns, height: rows });
    const c = canvas.getContext("2d");
    const image = c.createImageData(columns, rows);
    const [lo, hi] = extent(values);
    const [r, g, b, most] = isDark() ? [196, 208, 224, 88] : [45, 58, 76, 112];
    for (let i = 0; i < values.length; i++) {
      const row = rows - 1 - Math.floor(i / columns);
      const part = hi > lo ? (values[i] - lo) / (hi - lo) : 0;
      image.data.set([r, g, b, most * part], 4 * (row * columns + (i % columns)));
    }
    c.putImageData(image, 0, 0);
    this.ground = { canvas, x, y, columns, rows };
    this.root.dataset.ground = "drawn";
    this.draw();
  }

  drawAxes(c, colours) {
    const { w, h: high } = this.inner;
    const [[x0, x1], [y0, y1]] = this.window;
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = colours.soft;
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    const across = ticks(x0, x1, w / 90);
    c.textAlign = "center";
    for (const v of across.at) {
      const [px] = this.toPixels(v, 0);
      c.fillText(tickText(v, across.step), px, MARGIN.top + high + 15);
    }
    const title = (k) => `latent dimension ${k + 1}`;
    c.fillStyle = colours.text;
    c.fillText(title(this.view.x), MARGIN.left + w / 2, MARGIN.top + high + 31);
    if (this.about.q > 1) {
      const up = ticks(y0, y1, high / 70);
      c.textAlign = "right";
      c.fillStyle = colours.soft;
      for (const v of up.at) {
        const [, py] = this.toPixels(0, v);
        c.fillText(tickText(v, up.step), MARGIN.left - 6, py + 4);
      }
      c.save();
      c.translate(14, MARGIN.top + high / 2);
      c.rotate(-Math.PI / 2);
      c.textAlign = "center";
      c.fillStyle = colours.text;
      c.fillText(title(this.view.y), 0, 0);
      c.restore();
    }
    c.strokeRect(MARGIN.left + 0.5, MARGIN.top + 0.5, w - 1, high - 1);
  }

  /** The rows whose points are seen, or null where they are more than `most`. */
  seen(most) {
    const [[x0, x1], [y0, y1]] = this.window;
    const found = [];
    for (let i = 0; i < this.n; i++) {
      if (this.x[i] < x0 || this.x[i] > x1 || this.y[i] < y0 || this.y[i] > y1) continue;
      if (!this.scatter.colours || !this.scatter.colours[4 * i + 3]) continue;
      if (found.push(i) > most) return null;
    }
    return found;
  }

  drawEllipses(c) {
    if (!this.view.ellipses || !this.variance) {
      this.setHint("");
      return;
    }
    const rows = this.seen(MOST_ELLIPSES);
    this.setHint(rows ? "" : `Zoom in to see ellipses: more than ${MOST_ELLIPSES.toLocaleString("en")} points are in view`);
    const k = this.scale;
    const [vx, vy] = [this.variance[this.view.x], this.about.q > 1 ? this.variance[this.view.y] : null];
    const colours = this.scatter.colours;
    c.lineWidth = 1;
    for (const i of rows || []) {
      const [px, py] = this.toPixels(this.x[i], this.y[i]);
      c.strokeStyle = `rgb(${colours[4 * i]} ${colours[4 * i + 1]} ${colours[4 * i + 2]} / 45%)`;
      c.beginPath();
      c.ellipse(px, py, Math.sqrt(vx[i]) * k[0], vy ? Math.sqrt(vy[i]) * k[1] : 1, 0, 0, 2 * Math.PI);
      c.stroke();
    }
  }

  setHint(text) {
    if (this.hint.textContent !== text) this.hint.textContent = text;
    this.hint.hidden = !text;
  }

  drawInducing(c, colours) {
    if (!this.view.inducing || !this.about.inducing) return;
    for (const z of this.about.inducing) {
      const [px, py] = this.toPixels(z[this.view.x], this.about.q > 1 ? z[this.view.y] : 0);
      for (const [style, width] of [[colours.ground, 4], [colours.text, 1.8]]) {
        c.strokeStyle = style;
        c.lineWidth = width;
        c.beginPath();
        c.moveTo(px - 4, py - 4);
        c.lineTo(px + 4, py + 4);
        c.moveTo(px + 4, py - 4);
        c.lineTo(px - 4, py + 4);
        c.stroke();
      }
    }
  }

  drawSelected(c, colours) {
    if (this.selected && this.selected.length <= 20000) {
      c.strokeStyle = colours.text;
      c.lineWidth = 1.2;
      c.beginPath();
      for (const i of this.selected) {
        const [px, py] = this.toPixels(this.x[i], this.y[i]);
        c.moveTo(px + this.size * 0.7, py);
        c.arc(px, py, this.size * 0.7, 0, 2 * Math.PI);
      }
      c.stroke();
    }
    if (this.lasso && this.lasso.length > 1) {
      c.beginPath();
      this.lasso.forEach(([x, y], k) => (k ? c.lineTo(x, y) : c.moveTo(x, y)));
      c.closePath();
      c.fillStyle = isDark() ? "rgb(107 184 240 / 18%)" : "rgb(0 99 163 / 12%)";
      c.fill();
      c.strokeStyle = colours.accent;
      c.lineWidth = 1.5;
      c.stroke();
    }
  }

  drawPath(c, colours) {
    if (!this.path) return;
    const line = (points, style, width, dash) => {
      c.beginPath();
      points.forEach((p, k) => {
        const [px, py] = this.toPixels(p[this.view.x], this.about.q > 1 ? p[this.view.y] : 0);
        if (k) c.lineTo(px, py);
        else c.moveTo(px, py);
      });
      c.setLineDash(dash);
      c.strokeStyle = style;
      c.lineWidth = width;
      c.stroke();
      c.setLineDash([]);
    };
    for (const [name, points] of Object.entries(this.path.lines)) {
      const chosen = name === this.path.chosen;
      line(points, colours.ground, chosen ? 6 : 4, []);
      line(points, chosen ? colours.accent : colours.soft, chosen ? 3 : 1.8, name === "straight" ? [6, 4] : []);
    }
    if (this.path.now) this.disc(c, this.path.now, colours.accent, 6, colours);
  }

  disc(c, p, style, r, colours) {
    const [px, py] = this.toPixels(p[this.view.x], this.about.q > 1 ? p[this.view.y] : 0);
    c.beginPath();
    c.arc(px, py, r, 0, 2 * Math.PI);
    c.fillStyle = style;
    c.fill();
    c.strokeStyle = colours.ground;
    c.lineWidth = 2;
    c.stroke();
    return [px, py];
  }

  drawPlaced(c, colours) {
    const k = this.scale;
    for (const row of this.placed) {
      const [px, py] = this.toPixels(row.x[this.view.x], this.about.q > 1 ? row.x[this.view.y] : 0);
      c.strokeStyle = "#d55e00";
      c.fillStyle = "rgb(213 94 0 / 12%)";
      c.lineWidth = 1.5;
      c.beginPath();
      c.ellipse(px, py, Math.max(5, Math.sqrt(row.var[this.view.x]) * k[0]), Math.max(5, this.about.q > 1 ? Math.sqrt(row.var[this.view.y]) * k[1] : 5), 0, 0, 2 * Math.PI);
      c.fill();
      c.stroke();
      this.disc(c, row.x, "#d55e00", row.current ? 7 : 4.5, colours);
    }
  }

  drawPins(c, colours) {
    c.font = "600 12px system-ui, sans-serif";
    c.textAlign = "center";
    this.view.pins.forEach((pin, k) => {
      const [px, py] = this.disc(c, pin.x, colours.accent, 10, colours);
      c.fillStyle = isDark() ? "#0a1620" : "#ffffff";
      c.fillText(String(k + 1), px, py + 4);
    });
  }

  drawCursor(c, colours) {
    if (!this.cursor) return;
    const [px, py] = this.toPixels(...this.cursor.plane);
    c.strokeStyle = colours.text;
    c.lineWidth = 1;
    c.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      c.moveTo(px + 5 * dx, py + 5 * dy);
      c.lineTo(px + 13 * dx, py + 13 * dy);
    }
    c.stroke();
    if (this.cursor.row === null) return;
    const [rx, ry] = this.toPixels(this.x[this.cursor.row], this.y[this.cursor.row]);
    c.lineWidth = 2;
    c.beginPath();
    c.arc(rx, ry, this.size * 0.8 + 2, 0, 2 * Math.PI);
    c.stroke();
  }

  /** Looks at a place of the plane. */
  point(plane, row = null) {
    this.cursor = { plane, row };
    this.on.hover(this.position(plane), row);
    this.draw();
  }

  zoomAt(factor, px = this.width / 2, py = this.height / 2) {
    const before = this.toPlane(px, py);
    this.view.zoom = clamp(this.view.zoom * factor, 0.2, 2000);
    const after = this.toPlane(px, py);
    this.move(before[0] - after[0], before[1] - after[1]);
  }

  move(dx, dy) {
    const [x, y] = this.centre;
    [this.view.cx, this.view.cy] = [x + dx, this.about.q > 1 ? y + dy : y];
    this.draw();
    this.on.moved();
  }

  all() {
    Object.assign(this.view, { zoom: 1, cx: null, cy: null });
    this.draw();
    this.on.moved();
  }

  listen() {
    const place = (e) => {
      const box = this.over.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    let start = null;
    let pinch = null;
    const spread = () => {
      const [a, b] = [...this.pointers.values()];
      return { far: Math.hypot(a[0] - b[0], a[1] - b[1]) || 1, middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
    };
    const on = (name, act, options) => this.over.addEventListener(name, (e) => this.inner && act(e), options);
    on("pointerdown", (e) => {
      if (e.button) return;
      const at = place(e);
      this.pointers.set(e.pointerId, at);
      this.over.setPointerCapture(e.pointerId);
      this.over.focus({ preventScroll: true });
      if (this.pointers.size === 2) {
        [pinch, start, this.lasso] = [spread(), null, null];
      } else if (this.lassoing || e.shiftKey) {
        this.lasso = [at];
      } else {
        start = { at, last: at, moved: false };
        this.point(this.toPlane(...at), this.at(...at));
      }
    });
    on("pointermove", (e) => {
      const at = place(e);
      if (this.pointers.has(e.pointerId)) this.pointers.set(e.pointerId, at);
      if (pinch && this.pointers.size === 2) {
        const now = spread();
        this.zoomAt(now.far / pinch.far, ...now.middle);
        const k = this.scale;
        this.move((pinch.middle[0] - now.middle[0]) / k[0], (now.middle[1] - pinch.middle[1]) / k[1]);
        pinch = now;
        return;
      }
      if (this.lasso) {
        this.lasso.push(at);
        this.draw();
        return;
      }
      if (start && this.pointers.has(e.pointerId)) {
        if (!start.moved && Math.hypot(at[0] - start.at[0], at[1] - start.at[1]) < 5) return;
        const k = this.scale;
        this.move((start.last[0] - at[0]) / k[0], (at[1] - start.last[1]) / k[1]);
        Object.assign(start, { last: at, moved: true });
        this.dragging = true;
        return;
      }
      this.point(this.toPlane(...at), this.at(...at));
    });
    const end = (e) => {
      this.pointers.delete(e.pointerId);
      if (this.pointers.size < 2) pinch = null;
      if (this.dragging) {
        this.dragging = false;
        this.draw();
      }
      if (this.lasso) this.closeLasso();
      else if (start && !start.moved && e.type === "pointerup") this.pinAt(...start.at);
      start = null;
    };
    on("pointerup", end);
    on("pointercancel", end);
    on("wheel", (e) => {
      e.preventDefault();
      this.zoomAt(Math.exp(-clamp(e.deltaY, -120, 120) * (e.ctrlKey ? 0.01 : 0.0022)), ...place(e));
    }, { passive: false });
    on("keydown", (e) => this.key(e));
  }

  /** Pins the point at a pixel, or the place where there is none. */
  pinAt(px, py) {
    const row = this.at(px, py);
    const place = this.toPlane(px, py);
    this.on.pin(row === null ? this.position(place) : this.mean.map((m) => m[row]), row);
  }

  key(e) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key in steps) {
      const k = this.scale;
      const far = e.shiftKey ? 40 : 8;
      const [x, y] = this.cursor ? this.cursor.plane : this.centre;
      const plane = [x + (steps[e.key][0] * far) / k[0], y + (steps[e.key][1] * far) / k[1]];
      const row = this.at(...this.toPixels(...plane));
      this.point(plane, row);
      say(`${plane.map((v) => v.toPrecision(3)).join(", ")}${row === null ? "" : `, ${plain(this.on.name(row))}`}`);
    } else if (e.key === "Enter" || e.key === " ") {
      if (!this.cursor) this.point(this.centre);
      this.pinAt(...this.toPixels(...this.cursor.plane));
    } else if (e.key === "+" || e.key === "=") this.zoomAt(1.3);
    else if (e.key === "-") this.zoomAt(1 / 1.3);
    else if (e.key === "0") this.all();
    else if (e.key === "Escape") this.on.select(null);
    else return;
    e.preventDefault();
  }

  closeLasso() {
    const edge = this.lasso;
    this.lasso = null;
    if (edge.length > 2) {
      const inside = ([x, y]) => {
        let odd = false;
        for (let i = 0, j = edge.length - 1; i < edge.length; j = i++) {
          const [[xi, yi], [xj, yj]] = [edge[i], edge[j]];
          if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
        }
        return odd;
      };
      const rows = this.seen(Infinity).filter((i) => inside(this.toPixels(this.x[i], this.y[i])));
      this.on.select(rows);
    }
    this.draw();
  }
}
