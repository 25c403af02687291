// The frame: the title, what can be saved, light and dark, keys.

import { h, plain } from "./dom.js";
import { backend } from "./backend.js";
import { SpacePage } from "./space.js";
import { RegressionPage } from "./regression.js";
import { SeriesPage } from "./series.js";

const PAGES = { space: SpacePage, regression: RegressionPage, series: SeriesPage };

function theme(name) {
  document.documentElement.dataset.theme = name;
}

function helpOf(page) {
  const keys = [...page.help(), ["s", "save the figure as SVG"], ["p", "save it as PNG"], ["t", "light or dark"], ["?", "this help"]];
  const dialog = h("dialog", { "aria-label": "keys" }, h("h2", { text: "Keys" }),
    h("table", null, keys.map(([key, what]) => h("tr", null, h("td", null, h("kbd", { text: key })), h("td", { text: what })))),
    h("p", { class: "note", text: "The address of the page keeps the view: copy it to come back to it." }),
    h("form", { method: "dialog" }, h("button", { class: "primary", text: "Close" })));
  document.body.append(dialog);
  return dialog;
}

async function start() {
  const app = document.getElementById("app");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  theme(dark.matches ? "dark" : "light");
  try {
    const from = backend();
    const about = await from.ask("model");
    document.title = plain(about.title);
    const page = await PAGES[about.kind].open(about, from);
    const dialog = helpOf(page);
    const fail = (work) => Promise.resolve(work).catch((error) => {
      status.textContent = error.message;
    });
    const switchTheme = (name) => {
      theme(name);
      page.themed();
    };
    const other = () => switchTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    dark.addEventListener("change", () => switchTheme(dark.matches ? "dark" : "light"));
    const status = h("div", { id: "status", class: "status", role: "status", "aria-live": "polite" });
    const button = (text, title, act) => h("button", { type: "button", text, title, "aria-label": title, onclick: act });
    app.replaceChildren(
      h("header", { class: "top" },
        h("div", { class: "names" }, h("h1", { text: plain(about.title) }), h("p", { class: "small soft", text: plain(page.facts()) })),
        h("div", { class: "tools" }, button("SVG", "Save the figure as SVG", () => fail(page.save("svg"))), button("PNG", "Save the figure as PNG", () => fail(page.save("png"))),
          page.tables && button("CSV", "Save the numbers as CSV", () => fail(page.save("csv"))),
          button("◐", "Light or dark", other), button("?", "Keys", () => dialog.showModal()))),
      page.root, status);
    if (about.kind === "space") document.documentElement.classList.add("fill");
    page.started();
    document.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || dialog.open || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
      if (e.key === "?") dialog.showModal();
      else if (e.key === "t") other();
      else if (e.key === "s") fail(page.save("svg"));
      else if (e.key === "p") fail(page.save("png"));
      else if (e.key === "/" && page.search) page.search.focus();
      else if (!page.key(e)) return;
      e.preventDefault();
    });
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    app.replaceChildren(h("p", { class: "wait", role: "alert", text: `The model cannot be shown: ${plain(error.message)}` }));
    document.documentElement.dataset.ready = "failed";
  }
}

start();
