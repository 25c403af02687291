// Many points: WebGL where there is one, else a plain canvas.

import { rgb } from "./colour.js";

const VERTEX = `#version 300 es
in float x; in float y; in vec4 colour; in float shape;
uniform vec2 centre; uniform vec2 scale; uniform float size;
out vec4 tint; flat out int form;
void main() {
  gl_Position = vec4((vec2(x, y) - centre) * scale, 0.0, 1.0);
  gl_PointSize = colour.a == 0.0 ? 0.0 : size;
  tint = colour; form = int(shape + 0.5);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 tint; flat in int form;
uniform vec3 rim; uniform float size;
out vec4 paint;
void main() {
  if (tint.a == 0.0) discard;
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  float r;
  if (form == 1) r = max(abs(p.x), abs(p.y)) / 0.72;
  else if (form == 2) r = max(abs(p.x) * 1.15 + p.y * -0.62, p.y) / 0.62;
  else if (form == 3) r = (abs(p.x) + abs(p.y)) / 0.98;
  else r = length(p) / 0.8;
  float soft = 2.5 / size;
  float inside = 1.0 - smoothstep(1.0 - soft, 1.0 + soft, r);
  if (inside <= 0.01) discard;
  float edge = size > 6.0 ? smoothstep(0.74 - soft, 0.74 + soft, r) * 0.75 : 0.0;
  float alpha = tint.a * inside;
  paint = vec4(mix(tint.rgb, rim, edge) * alpha, alpha);
}`;

/** Points on a canvas of their own. */
export class Scatter {
  constructor(canvas) {
    this.canvas = canvas;
    this.n = 0;
    const asked = { antialias: false, premultipliedAlpha: true, alpha: true };
    this.gl = new URLSearchParams(location.search).has("canvas") ? null : canvas.getContext("webgl2", asked);
    if (this.gl) this.prepare();
    else this.flat = canvas.getContext("2d");
    canvas.addEventListener("webglcontextlost", (e) => e.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.prepare();
      this.setPoints(this.x, this.y);
      this.setLook(this.colours, this.shapes);
      this.again?.();
    });
  }

  prepare() {
    const gl = this.gl;
    const part = (kind, text) => {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      return shader;
    };
    const program = gl.createProgram();
    gl.attachShader(program, part(gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, part(gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program);
    gl.useProgram(program);
    this.place = (name) => gl.getUniformLocation(program, name);
    this.uniforms = Object.fromEntries(["centre", "scale", "size", "rim"].map((name) => [name, this.place(name)]));
    this.buffers = {};
    for (const [name, size, type] of [["x", 1, gl.FLOAT], ["y", 1, gl.FLOAT], ["colour", 4, gl.UNSIGNED_BYTE], ["shape", 1, gl.UNSIGNED_BYTE]]) {
      const [buffer, index] = [gl.createBuffer(), gl.getAttribLocation(program, name)];
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(index);
      gl.vertexAttribPointer(index, size, type, name === "colour", 0, 0);
      this.buffers[name] = buffer;
    }
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  upload(name, array) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
  }

  setPoints(x, y) {
    [this.x, this.y, this.n] = [x, y, x.length];
    if (!this.gl) return;
    this.upload("x", x);
    this.upload("y", y);
  }

  /** Four bytes of colour a point, of which an alpha of 0 hides it, and its shape. */
  setLook(colours, shapes) {
    [this.colours, this.shapes] = [colours, shapes];
    if (!this.gl) return;
    this.upload("colour", colours);
    this.upload("shape", shapes);
  }

  /** Draws with `centre` in the middle and `scale` pixels a unit; `size` is the diameter of a point in pixels. */
  draw({ width, height, centre, scale, size, rim, ratio }) {
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
    if (!this.colours) return;
    if (!this.gl) {
      this.drawFlat(w, h, centre, scale, size, ratio);
      return;
    }
    const gl = this.gl;
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(this.uniforms.centre, centre[0], centre[1]);
    gl.uniform2f(this.uniforms.scale, (2 * scale[0]) / width, (2 * scale[1]) / height);
    // The quad of a point is larger than the point by its rim.
    gl.uniform1f(this.uniforms.size, 1.25 * size * ratio);
    const [r, g, b] = rgb(rim).map((v) => v / 255);
    gl.uniform3f(this.uniforms.rim, r, g, b);
    gl.drawArrays(gl.POINTS, 0, this.n);
  }

  drawFlat(w, h, centre, scale, size, ratio) {
    const image = this.flat.createImageData(w, h);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = new Uint32Array(this.colours.buffer, this.colours.byteOffset, this.n);
    const half = Math.max(0, Math.round((0.8 * size * ratio) / 2));
    for (let i = 0; i < this.n; i++) {
      if (this.colours[4 * i + 3] === 0) continue;
      const px = Math.round(((this.x[i] - centre[0]) * scale[0]) * ratio + w / 2);
      const py = Math.round(h / 2 - ((this.y[i] - centre[1]) * scale[1]) * ratio);
      if (px < -half || py < -half || px >= w + half || py >= h + half) continue;
      for (let dy = -half; dy <= half; dy++) {
        const row = py + dy;
        if (row < 0 || row >= h) continue;
        const reach = Math.floor(Math.sqrt(half * half - dy * dy));
        for (let c = Math.max(0, px - reach); c <= Math.min(w - 1, px + reach); c++) pixels[row * w + c] = colours[i];
      }
    }
    this.flat.putImageData(image, 0, 0);
  }
}
