// The map as SVG, as it is seen, and any SVG as PNG.

import { classColour, ink, isDark, marker, ramp } from "./colour.js";
import { h, plain } from "./dom.js";
import { tickText, ticks } from "./axes.js";

/** Points beyond this number are one picture inside the SVG. */
const MOST_MARKERS = 20000;

const escape = (text) => plain(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const hex = (rgb) => `#${rgb.map((v) => v.toString(16).padStart(2, "0")).join("")}`;

/** The map as it is seen. `legend` is { classes: [[colour index, name]] } or { lo, hi, title }. */
export function mapFigure(map, legend, title) {
  const colours = ink();
  const { w, h: high } = map.inner;
  const [left, top, bottom] = [58, title ? 34 : 14, 44];
  const side = legend ? 168 : 14;
  const [width, height] = [Math.round(left + w + side), Math.round(top + high + bottom)];
  const shift = ([x, y]) => [x - 52 + left, y - 12 + top];
  const place = (x, y) => shift(map.toPixels(x, y));
  const out = [];
  const text = (x, y, anchor, content, more = "") => out.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" ${more}>${escape(content)}</text>`);
  out.push(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12" fill="${colours.soft}">`);
  out.push(`<rect width="${width}" height="${height}" fill="${colours.ground}"/><defs><clipPath id="plot"><rect x="${left}" y="${top}" width="${w.toFixed(1)}" height="${high.toFixed(1)}"/></clipPath></defs><g clip-path="url(#plot)">`);
  const picture = (canvas, side) => out.push(`<image x="${left - side}" y="${top - side}" width="${(w + 2 * side).toFixed(1)}" height="${(high + 2 * side).toFixed(1)}" href="${canvas.toDataURL("image/png")}"/>`);
  map.drawn = null;
  map.drawNow();
  const { around } = map;
  if (map.ground && map.view.ground) picture(map.under, 0);
  const rows = map.seen(MOST_MARKERS);
  if (rows) {
    if (map.view.ellipses && map.variance && rows.length <= 4000) {
      const k = map.scale;
      for (const i of rows) {
        const [x, y] = place(map.x[i], map.y[i]);
        const ry = map.about.q > 1 ? Math.sqrt(map.variance[map.view.y][i]) * k[1] : 1;
        out.push(`<ellipse cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" rx="${(Math.sqrt(map.variance[map.view.x][i]) * k[0]).toFixed(2)}" ry="${ry.toFixed(2)}" fill="none" stroke="${hex([...map.scatter.colours.subarray(4 * i, 4 * i + 3)])}" stroke-opacity="0.45"/>`);
      }
    }
    const paths = new Map();
    for (const i of rows) {
      const key = `${hex([...map.scatter.colours.subarray(4 * i, 4 * i + 3)])}|${map.scatter.colours[4 * i + 3]}|${map.scatter.shapes[i]}`;
      if (!paths.has(key)) paths.set(key, []);
      paths.get(key).push(marker(map.scatter.shapes[i], ...place(map.x[i], map.y[i]), map.size / 2));
    }
    for (const [key, list] of paths) {
      const [fill, alpha] = key.split("|");
      out.push(`<path d="${list.join("")}" fill="${fill}" fill-opacity="${(alpha / 255).toFixed(2)}" stroke="${colours.rim}" stroke-width="0.5"/>`);
    }
  } else picture(map.scatter.canvas, around);
  if (map.view.inducing && map.about.inducing) {
    const crosses = map.about.inducing.map((z) => {
      const [x, y] = place(z[map.view.x], map.about.q > 1 ? z[map.view.y] : 0);
      return `M${(x - 4).toFixed(1)} ${(y - 4).toFixed(1)}l8 8m0-8l-8 8`;
    });
    out.push(`<path d="${crosses.join("")}" stroke="${colours.text}" stroke-width="1.8" fill="none"/>`);
  }
  if (map.path) {
    for (const [name, points] of Object.entries(map.path.lines)) {
      const d = points.map((p, k) => `${k ? "L" : "M"}${place(p[map.view.x], map.about.q > 1 ? p[map.view.y] : 0).map((v) => v.toFixed(1)).join(" ")}`).join("");
      out.push(`<path d="${d}" fill="none" stroke="${name === map.path.chosen ? colours.accent : colours.soft}" stroke-width="${name === map.path.chosen ? 3 : 1.8}"${name === "straight" ? ' stroke-dasharray="6 4"' : ""}/>`);
    }
  }
  map.view.pins.forEach((pin, k) => {
    const [x, y] = place(pin.x[map.view.x], map.about.q > 1 ? pin.x[map.view.y] : 0);
    out.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="10" fill="${colours.accent}" stroke="${colours.ground}" stroke-width="2"/>`);
    text(x, y + 4, "middle", String(k + 1), `fill="${isDark() ? "#0a1620" : "#ffffff"}" font-weight="600"`);
  });
  out.push(`</g><rect x="${left}" y="${top}" width="${w.toFixed(1)}" height="${high.toFixed(1)}" fill="none" stroke="${colours.line}"/>`);
  const [[x0, x1], [y0, y1]] = map.window;
  const across = ticks(x0, x1, w / 90);
  for (const v of across.at) text(place(v, 0)[0], top + high + 17, "middle", tickText(v, across.step));
  text(left + w / 2, top + high + 36, "middle", `latent dimension ${map.view.x + 1}`, `fill="${colours.text}"`);
  if (map.about.q > 1) {
    const up = ticks(y0, y1, high / 70);
    for (const v of up.at) text(left - 7, place(0, v)[1] + 4, "end", tickText(v, up.step));
    text(16, top + high / 2, "middle", `latent dimension ${map.view.y + 1}`, `fill="${colours.text}" transform="rotate(-90 16 ${(top + high / 2).toFixed(1)})"`);
  }
  if (title) text(left, 22, "start", title, `fill="${colours.text}" font-size="14" font-weight="600"`);
  const at = left + w + 18;
  if (legend?.classes) {
    legend.classes.slice(0, Math.floor(high / 20)).forEach(([k, name], i) => {
      const y = top + 10 + 20 * i;
      out.push(`<path d="${marker(k < 0 ? 0 : legend.shape(k), at, y, 5)}" fill="${classColour(k)}"/>`);
      text(at + 13, y + 4, "start", name.length > 20 ? `${name.slice(0, 19)}…` : name, `fill="${colours.text}"`);
    });
  } else if (legend) {
    for (let i = 0; i < 60; i++) out.push(`<rect x="${at}" y="${(top + 22 + (120 * i) / 60).toFixed(1)}" width="14" height="2.6" fill="${hex(ramp(1 - i / 59))}"/>`);
    text(at, top + 10, "start", legend.title, `fill="${colours.text}"`);
    text(at + 20, top + 30, "start", legend.hi);
    text(at + 20, top + 142, "start", legend.lo);
  }
  out.push("</svg>");
  return out.join("\n");
}

/** An SVG as a PNG of twice its size. */
export async function toPng(svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    await new Promise((done, failed) => {
      image.onload = done;
      image.onerror = () => failed(new Error("the figure could not be drawn"));
      image.src = address;
    });
    const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
