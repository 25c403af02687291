// Colours of classes and of quantities, for light and for dark ground.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#882255", "#999933", "#117733", "#333333", "#661100"];
const DARK = ["#4aa8e8", "#ff8f3f", "#25c398", "#e79cc6", "#f2b535", "#9bdcff", "#9f92f5", "#e0709f", "#cfcf60", "#62c770", "#d6d6d6", "#dd9078"];
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];

/** Classes that have a colour of their own; the rarer ones share the last. */
export const MOST_CLASSES = LIGHT.length;

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** The colour of class k, or of what has none. */
export function classColour(k, dark = isDark()) {
  if (k < 0) return dark ? "#7d8791" : "#8c8c8c";
  return (dark ? DARK : LIGHT)[k % LIGHT.length];
}

/** The colour of a part from 0 to 1. */
export function ramp(t) {
  const at = Math.min(Math.max(t, 0), 1) * (VIRIDIS.length - 1);
  const k = Math.min(Math.floor(at), VIRIDIS.length - 2);
  const [a, b] = [rgb(VIRIDIS[k]), rgb(VIRIDIS[k + 1])];
  return a.map((v, i) => Math.round(v + (b[i] - v) * (at - k)));
}

export function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** The colours of text and lines where a figure is drawn, from the style of the page. */
export function ink(dark = isDark()) {
  return dark
    ? { ground: "#12171d", text: "#e8ecf1", soft: "#a3adb9", line: "#323b46", grid: "#212932", accent: "#6bb8f0", rim: "#12171d" }
    : { ground: "#ffffff", text: "#1c2128", soft: "#57606a", line: "#c3cad2", grid: "#eceff2", accent: "#0063a3", rim: "#ffffff" };
}

/** Names in the order of people: numbers by value, others by letters with numbers in them by value. */
export function inOrder(names) {
  return [...names].sort(new Intl.Collator("en", { numeric: true }).compare);
}

/** The outline of the marker of class k. */
export function shapeOf(k) {
  return k < 0 ? 0 : [0, 2, 1, 3][(k + 2 * Math.floor(k / 8)) % 4];
}

/** A marker as a path around (x, y), of the area of a disc of radius r. */
export function marker(shape, x, y, r) {
  const points = (list) => "M" + list.map(([a, b]) => `${(x + a).toFixed(2)} ${(y + b).toFixed(2)}`).join("L") + "Z";
  if (shape === 1) return points([[-0.886 * r, -0.886 * r], [0.886 * r, -0.886 * r], [0.886 * r, 0.886 * r], [-0.886 * r, 0.886 * r]]);
  if (shape === 2) return points([[0, -1.5525 * r], [1.35 * r, 0.81 * r], [-1.35 * r, 0.81 * r]]);
  if (shape === 3) return points([[0, -1.254 * r], [1.254 * r, 0], [0, 1.254 * r], [-1.254 * r, 0]]);
  const [a, b] = [x.toFixed(2), r.toFixed(2)];
  return `M${a} ${(y - r).toFixed(2)}a${b} ${b} 0 1 0 0.01 0Z`;
}
