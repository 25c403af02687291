// Where answers come from: the server beside the page, or the data in it.

import { Linear, Process, floats } from "./kernel.js";

/** Asks the server. */
export class Server {
  constructor() {
    this.live = true;
  }

  async fetch(name, what) {
    let answer;
    try {
      answer = await fetch(`api/${name}`, {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(what),
      });
    } catch {
      throw new Error("The server does not answer: is `latentgp explore` still running?");
    }
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({}));
      throw new Error(told.error || `the server refused (${answer.status})`);
    }
    return answer;
  }

  async ask(name, what = {}) {
    return (await this.fetch(name, what)).json();
  }

  async floats(name, what = {}) {
    return new Float32Array(await (await this.fetch(name, what)).arrayBuffer());
  }
}

/** Works answers out from the data in the page. */
export class Inline {
  constructor(data) {
    this.live = false;
    this.data = data;
    const { q } = data.about;
    const kinds = { linear: Linear, process: Process };
    this.decoder = data.decoder && new kinds[data.decoder.kind](data.decoder, q);
    this.y = data.data && floats(data.data);
  }

  async ask(name, what) {
    const { about } = this.data;
    if (name === "model") return { ...about, no_decoder: this.data.no_decoder, no_rows: !this.y };
    if (name === "decode") {
      const all = what.x.map((x) => this.decoder.decode(x));
      return { mean: all.map((a) => a.mean), std: all.map((a) => a.std) };
    }
    if (name === "rows") return this.rows(what.rows);
    throw new Error("This file has no server: `latentgp explore` does that.");
  }

  rows(rows) {
    const { d, noise, q, n } = this.data.about;
    const filled = [];
    const values = rows.map((i, at) => {
      const row = Array.from(this.y.subarray(i * d, i * d + d), (v) => (Number.isNaN(v) ? null : v));
      if (this.decoder && row.includes(null)) {
        const positions = (this.positions ??= floats(this.data.positions));
        const there = this.decoder.decode(Array.from({ length: q }, (_, k) => positions[k * n + i]));
        row.forEach((v, j) => v === null && filled.push([at, j, there.mean[j], Math.sqrt(there.std[j] ** 2 + noise[j])]));
      }
      return row;
    });
    return { values, filled };
  }

  async floats(name, what = {}) {
    const { about } = this.data;
    if (name === "positions") return floats(this.data.positions);
    if (name === "column") {
      if (what.name === "outlier") return floats(this.data.outlier);
      const [kind, column] = [what.name.slice(0, what.name.indexOf(":")), what.name.slice(what.name.indexOf(":") + 1)];
      if (kind === "extra") return floats(this.data.extra.find(([own]) => own === column)[1]);
      const j = about.columns.indexOf(column);
      return Float32Array.from({ length: about.n }, (_, i) => this.y[i * about.d + j]);
    }
    if (name === "ground") {
      const { dims, x, y, columns, rows } = what;
      const place = [...what.at];
      return Float32Array.from({ length: columns * rows }, (_, i) => {
        place[dims[0]] = x[0] + ((x[1] - x[0]) * (i % columns)) / (columns - 1);
        place[dims[1]] = y[0] + ((y[1] - y[0]) * Math.floor(i / columns)) / (rows - 1);
        return this.decoder.decode(place).scaled;
      });
    }
    throw new Error(`this file has no ${name}`);
  }
}

export function backend() {
  const data = document.getElementById("data");
  return data ? new Inline(JSON.parse(data.textContent)) : new Server();
}
