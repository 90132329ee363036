// The page: a head that stays, and a view for each address. Everything shown is made anew from the address and the data.

import { here, link, turn } from "./address.js";
import { el, fill } from "./dom.js";
import { attach, detach } from "./figures.js";
import { labList, labPage } from "./labs.js";
import { ruleIndex, rulePage } from "./rules.js";
import { comparePage, runList, runPage } from "./runs.js";
import { source as makeSource } from "./socket.js";
import { treePage } from "./tree.js";
import { currentLanguage, say, setLanguage, setWords, word } from "./words.js";

const VIEWS = ["tree", "labs", "rules", "runs"];
const head = document.getElementById("head"), state = document.getElementById("state"), main = document.getElementById("main");
const preferred = currentLanguage();
let book = null, last = null;

const source = makeSource((connected) => {
  state.className = connected ? "" : "broken";
  state.textContent = connected ? word("connected") : word("disconnected");
  if (connected) setTimeout(() => { if (!state.className) state.textContent = ""; }, 3000);
});

function theme() {
  const wanted = here().query.theme;
  return wanted === "dark" || wanted === "light" ? wanted : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function drawHead() {
  const { view, query } = here();
  const other = currentLanguage() === "zh" ? "en" : "zh";
  const dark = theme() === "dark";
  const shown = VIEWS.filter((name) => name !== "runs" || source.hasRuns);
  const focused = head.contains(document.activeElement) ? document.activeElement.id : "";
  fill(head, el("a", { class: "skip", href: "#main", on: { click: (event) => { event.preventDefault(); main.focus(); } } }, word("skip")),
    el("a", { class: "brand", href: link("tree") }, "traindx ", el("span", {}, "studio")),
    el("nav", { "aria-label": word("views") }, shown.map((name) => el("a", { href: link(name), "aria-current": name === view || (name === "runs" && view === "compare") ? "page" : null }, word(name)))),
    query.run && source.hasRuns ? el("p", { class: "loaded" }, word("loaded"), " ", el("a", { href: link("runs", [query.run]) }, query.run), " ",
      el("button", { type: "button", "aria-label": word("unload"), on: { click: () => turn({ run: null }) } }, "×")) : null,
    el("div", { class: "tools" },
      el("button", { type: "button", id: "language", lang: other === "zh" ? "zh-CN" : "en", on: { click: () => { turn({ lang: other }); } } }, other === "zh" ? "中文" : "English"),
      el("button", { type: "button", id: "theme", on: { click: () => { turn({ theme: dark ? "light" : "dark" }); } } }, word(dark ? "light" : "dark"))));
  if (focused) document.getElementById(focused).focus();
}

function show() {
  const { view, parts, query } = here();
  setLanguage(query.lang ?? preferred);
  document.documentElement.dataset.theme = theme();
  drawHead();
  const before = last;
  last = [view, ...parts].join("/");
  const stays = view === "tree" && before !== null && (before === "tree" || before.startsWith("tree/"));
  if (!stays) detach(main);
  source.unwatch?.(source.watching?.keys().next().value);
  const views = {
    labs: () => (parts.length ? labPage(main, book, source, parts[0], query) : labList(main, book)),
    rules: () => (parts.length ? rulePage(main, book, source, parts.join("/")) : ruleIndex(main, book)),
    runs: source.hasRuns && (() => (parts.length ? runPage(main, book, source, parts[0]) : runList(main, book, source))),
    compare: source.hasRuns && (() => comparePage(main, book, source, parts)),
  };
  const shown = (views[view] || (() => treePage(main, book, source, parts, query)))();
  if (shown instanceof Promise) shown.catch((error) => { if (here().view === view) problem(error); });
  if (view !== "tree") attach(main);
  const title = main.querySelector("h1")?.textContent ?? "";
  document.title = `${title} · traindx studio`;
  if (before !== null && before !== last && !stays) {
    scrollTo(0, 0);
    if (!main.contains(document.activeElement)) main.focus({ preventScroll: true });
  }
}

async function start() {
  fill(main, el("p", { role: "status" }, currentLanguage() === "zh" ? "正在打开……" : "Opening ..."));
  book = await source.catalogue();
  setWords(book.words);
  addEventListener("hashchange", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

function problem(error) {
  fill(main, el("h1", {}, "traindx studio"), el("p", { class: "verdict error", role: "alert" }, say(error.text ?? String(error))));
}

start().catch(problem);
