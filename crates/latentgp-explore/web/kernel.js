// The process that decodes positions, for a page without a server: kernels, and the posterior by its matrices.
//
//   w = L⁻¹k(Z, x)     mean = wᵀv     variance = k(x, x) − wᵀCw,   v = Lᵀα

const at = (of, q) => (of.length === 1 ? of[0] : of[q]);

function distance(k, x, z) {
  let r2 = 0;
  for (let q = 0; q < x.length; q++) {
    const d = (x[q] - z[q]) / at(k.lengthscale, q);
    r2 += d * d;
  }
  return r2;
}

function inner(weights, x, z) {
  let sum = 0;
  for (let q = 0; q < x.length; q++) sum += at(weights, q) * x[q] * z[q];
  return sum;
}

function wave(k, x) {
  let turns = 0;
  for (let q = 0; q < x.length; q++) turns += (x[q] / at(k.period, q)) % 1;
  return 2 * Math.PI * turns;
}

const KERNELS = {
  rbf: (k, x, z) => k.variance[0] * Math.exp(-0.5 * distance(k, x, z)),
  matern12: (k, x, z) => k.variance[0] * Math.exp(-Math.sqrt(distance(k, x, z))),
  matern32: (k, x, z) => {
    const a = Math.sqrt(3 * distance(k, x, z));
    return k.variance[0] * (1 + a) * Math.exp(-a);
  },
  matern52: (k, x, z) => {
    const a = Math.sqrt(5 * distance(k, x, z));
    return k.variance[0] * (1 + a + (a * a) / 3) * Math.exp(-a);
  },
  rational_quadratic: (k, x, z) => k.variance[0] * Math.exp(-k.alpha[0] * Math.log1p(distance(k, x, z) / (2 * k.alpha[0]))),
  periodic: (k, x, z) => {
    let r2 = 0;
    for (let q = 0; q < x.length; q++) r2 += (Math.sin((Math.PI * (x[q] - z[q])) / k.period[0]) / at(k.lengthscale, q)) ** 2;
    return k.variance[0] * Math.exp(-0.5 * r2);
  },
  cosine: (k, x, z) => k.variance[0] * Math.cos(wave(k, x) - wave(k, z)),
  linear: (k, x, z) => inner(k.variance, x, z),
  polynomial: (k, x, z) => k.variance[0] * (k.offset[0] + inner([1], x, z)) ** k.degree,
  constant: (k) => k.variance[0],
  white: () => 0,
  sum: (k, x, z) => k.parts.reduce((sum, part) => sum + evaluate(part, x, z), 0),
  product: (k, x, z) => k.parts.reduce((all, part) => all * evaluate(part, x, z), 1),
  select: (k, x, z) => evaluate(k.part, k.dims.map((q) => x[q]), k.dims.map((q) => z[q])),
};

/** k(x, z) of two different points. */
export function evaluate(k, x, z) {
  return KERNELS[k.name](k, x, z);
}

/** k(x, x), which has the variance of white parts. */
export function diagonal(k, x) {
  if (k.name === "white") return k.variance[0];
  if (k.name === "sum") return k.parts.reduce((sum, part) => sum + diagonal(part, x), 0);
  if (k.name === "product") return k.parts.reduce((all, part) => all * diagonal(part, x), 1);
  if (k.name === "select") return diagonal(k.part, k.dims.map((q) => x[q]));
  return evaluate(k, x, x);
}

export function bytes(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
}

export const doubles = (text) => new Float64Array(bytes(text));
export const floats = (text) => new Float32Array(bytes(text));

/** A linear model: Wx + mean, whose function is certain. */
export class Linear {
  constructor(spec, q) {
    this.w = doubles(spec.w);
    this.mean = spec.mean;
    this.q = q;
  }

  decode(x) {
    const mean = this.mean.map((m, j) => {
      let sum = m;
      for (let k = 0; k < this.q; k++) sum += this.w[j * this.q + k] * x[k];
      return sum;
    });
    return { mean, std: mean.map(() => 0), scaled: 0 };
  }
}

/** A process. */
export class Process {
  constructor(spec, q) {
    this.kernel = spec.kernel;
    this.m = spec.m;
    const z = doubles(spec.z);
    this.z = Array.from({ length: spec.m }, (_, i) => Array.from(z.subarray(i * q, i * q + q)));
    this.l = doubles(spec.l);
    this.mean = spec.mean;
    this.scale = spec.scale;
    this.factors = spec.factors.map((f) => ({
      columns: f.columns,
      v: doubles(f.v),
      c: f.explained && doubles(f.explained.c),
      u: f.explained && f.explained.u && doubles(f.explained.u),
      k: f.explained && f.explained.k,
    }));
  }

  white(x) {
    const { m, l } = this;
    const w = new Float64Array(m);
    for (let i = 0; i < m; i++) {
      let sum = evaluate(this.kernel, x, this.z[i]);
      const row = i * m;
      for (let j = 0; j < i; j++) sum -= l[row + j] * w[j];
      w[i] = sum / l[row + i];
    }
    return w;
  }

  /** wᵀCw of output j among the columns of a set. */
  explained(f, w) {
    const { m } = this;
    if (!f.c) {
      let sum = 0;
      for (let i = 0; i < m; i++) sum += w[i] * w[i];
      return () => sum;
    }
    if (!f.u) {
      let sum = 0;
      for (let i = 0; i < m; i++) {
        let row = 0;
        for (let j = 0; j < m; j++) row += f.c[i * m + j] * w[j];
        sum += w[i] * row;
      }
      return () => sum;
    }
    const along = new Float64Array(f.k);
    for (let i = 0; i < m; i++) for (let k = 0; k < f.k; k++) along[k] += w[i] * f.u[i * f.k + k];
    return (j) => {
      let sum = 0;
      for (let k = 0; k < f.k; k++) sum += along[k] * along[k] * f.c[k * f.columns.length + j];
      return sum;
    };
  }

  /** Means and deviations in the units of the data, and the variance averaged over the scaled columns. */
  decode(x) {
    const w = this.white(x);
    const prior = diagonal(this.kernel, x);
    const [mean, std] = [[], []];
    let scaled = 0;
    for (const f of this.factors) {
      const d = f.columns.length;
      const own = this.explained(f, w);
      f.columns.forEach((column, j) => {
        let sum = 0;
        for (let i = 0; i < this.m; i++) sum += w[i] * f.v[i * d + j];
        const variance = Math.max(0, prior - own(j));
        scaled += variance;
        mean[column] = sum * this.scale[column] + this.mean[column];
        std[column] = Math.sqrt(variance) * this.scale[column];
      });
    }
    return { mean, std, scaled: scaled / this.scale.length };
  }
}
