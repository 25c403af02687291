// Elements, numbers for readers, and files. Text is always text: nothing here takes markup.

const SVG = "http://www.w3.org/2000/svg";

function build(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

/** An element with its attributes, listeners and children. */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** The same of SVG. */
export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

/** A number with so many significant digits, a true minus sign and no needless zeros. */
export function short(v, digits = 4) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  let text;
  if (size >= 1e6 || size < 1e-4) text = v.toExponential(Math.max(0, digits - 2)).replace("e+", "e");
  else text = v.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  if (text.includes(".") && !text.includes("e")) text = text.replace(/\.?0+$/, "");
  return text.replace(/-/g, "−");
}

export function count(n, what) {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}

/** Text that may have control characters, each as a visible sign. */
export function plain(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\u00b7");
}

/** Gives a file to who looks at the page. */
export function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** A table as CSV. */
export function csv(names, rows) {
  const cell = (v) => {
    if (v === null || v === undefined || Number.isNaN(v)) return "";
    const text = String(v);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** Calls `work` with the latest of what it is given, one at a time: what comes meanwhile replaces what waits. */
export function latest(work) {
  let busy = false;
  let waiting = null;
  return async function ask(...given) {
    waiting = given;
    if (busy) return;
    busy = true;
    while (waiting) {
      const now = waiting;
      waiting = null;
      try {
        await work(...now);
      } catch (error) {
        say(error.message);
      }
    }
    busy = false;
  };
}

/** Calls `work` once in the next frame, however often it is asked. */
export function onceAFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

/** Tells screen readers what happened. */
export function say(text) {
  const place = document.getElementById("status");
  if (place) place.textContent = text;
}

export function clamp(v, lo, hi) {
  return Math.min(Math.max(v, lo), hi);
}

/** A list of choices; each is [value, text], or { group, choices }. */
export function select(label, choices, value, change, kind = "") {
  const option = ([v, text]) => h("option", { value: v, text: plain(text), selected: String(v) === String(value) });
  const parts = choices.map((c) => (c.group ? h("optgroup", { label: c.group }, c.choices.map(option)) : option(c)));
  const list = h("select", { onchange: (e) => change(e.target.value) }, parts);
  return h("label", { class: `field ${kind}` }, label, list);
}

/** A button that stays pressed. */
export function toggle(text, pressed, change, title) {
  return h("button", {
    type: "button", text, title, "aria-pressed": String(pressed),
    onclick: (e) => {
      const now = e.currentTarget.getAttribute("aria-pressed") !== "true";
      e.currentTarget.setAttribute("aria-pressed", String(now));
      change(now);
    },
  });
}

/** A part of the page with a heading. */
export function card(title, tools, ...children) {
  return h("section", { class: "card" }, h("div", { class: "head" }, h("h2", { text: title }), tools), children);
}
