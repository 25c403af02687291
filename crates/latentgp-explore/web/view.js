// What is looked at, in the address of the page.

const FLAGS = ["ellipses", "ground", "inducing"];

/** The view of an address, `usual` where it says nothing. */
export function readView(usual) {
  const view = { ...usual };
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (given.has(name) && Number.isFinite(Number(given.get(name))) ? Number(given.get(name)) : null);
  for (const name of Object.keys(usual)) {
    if (!given.has(name)) continue;
    if (FLAGS.includes(name)) view[name] = given.get(name) === "1";
    else if (typeof usual[name] === "number") view[name] = number(name) ?? usual[name];
    else if (name === "pins") {
      view.pins = given.get("pins").split(";").map(readPin).filter(Boolean);
    } else if (name === "hidden") view.hidden = given.getAll("hidden");
    else if (Array.isArray(usual[name])) {
      const list = given.get(name).split(",").map(Number);
      if (list.every(Number.isFinite)) view[name] = list;
    } else view[name] = given.get(name);
  }
  return view;
}

function readPin(text) {
  const [numbers, row] = text.split("@");
  const x = numbers.split(",").map(Number);
  return x.every(Number.isFinite) ? { x, row: row === undefined ? null : Number(row) } : null;
}

const digits = (v) => String(Number(v.toPrecision(6)));

/** Puts a view into the address; what is usual is left out. */
export function writeView(view, usual) {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(view)) {
    if (JSON.stringify(value) === JSON.stringify(usual[name])) continue;
    if (FLAGS.includes(name)) out.set(name, value ? "1" : "0");
    else if (name === "pins") out.set(name, value.map((p) => p.x.map(digits).join(",") + (p.row === null ? "" : `@${p.row}`)).join(";"));
    else if (name === "hidden") value.forEach((v) => out.append(name, v));
    else if (Array.isArray(value)) out.set(name, value.map(digits).join(","));
    else if (typeof value === "number") out.set(name, digits(value));
    else if (value !== null && value !== "") out.set(name, value);
  }
  const text = out.toString();
  try {
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  } catch {
    // A page inside another may have no history of its own.
  }
}
