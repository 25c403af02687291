// Round ticks of an axis.

/** Round values between two ends, about so many. */
export function ticks(lo, hi, about) {
  const span = hi - lo;
  if (!(span > 0) || !Number.isFinite(span)) return { at: [], step: 1 };
  const raw = span / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5].find((f) => f * power >= raw * 0.75) ?? 10) * power;
  const at = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + 1e-9 * span; k++) at.push(k * step);
  return { at, step };
}

/** A tick with the decimals that its step needs. */
export function tickText(v, step) {
  if (Math.abs(v) < 1e-9 * step) return "0";
  if (Math.abs(v) >= 1e6 || step < 1e-4) return v.toExponential(1).replace("e+", "e").replace(/-/g, "−");
  return v.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace(/-/g, "−");
}

/** The least and the largest of numbers, missing ones left out. */
export function extent(values) {
  let [lo, hi] = [Infinity, -Infinity];
  for (const v of values) {
    if (v === null || !Number.isFinite(v)) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return lo <= hi ? [lo, hi] : [0, 1];
}

/** An interval a little longer, and never empty. */
export function roomy([lo, hi], part = 0.06) {
  const span = hi - lo || Math.abs(hi) * 0.2 || 1;
  return [lo - part * span, hi + part * span];
}
