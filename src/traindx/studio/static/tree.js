// The diagnosis tree: symptom, question, cause, by mouse and by keyboard (the tree pattern of WAI-ARIA); a leaf trains its curve.

import { link, turn } from "./address.js";
import { el, fill, prose, table } from "./dom.js";
import { attach, detach, figure } from "./figures.js";
import { currentLanguage, say, word } from "./words.js";

const PAUSE = 700; // milliseconds after which letters begin a new search
const SEEDS = 5;
let mounted = null;

/** Shows the tree, or only moves its selection where it stands already. */
export function treePage(main, book, source, parts, query) {
  const key = [currentLanguage(), document.documentElement.dataset.theme, query.run ?? ""].join("|");
  if (!mounted || mounted.key !== key || !main.contains(mounted.root)) {
    mounted = new Tree(main, book, source, query.run ?? null);
    mounted.key = key;
  }
  mounted.select(parts[0] ?? null, parts[1] ?? null, parts.slice(2).join("/") || null, Number(query.seed) || 0);
}

class Tree {
  constructor(main, book, source, run) {
    this.book = book;
    this.source = source;
    this.run = run;
    this.items = new Map(); // path -> treeitem
    this.typed = "";
    this.root = el("ul", { class: "tree", role: "tree", "aria-label": word("tree"), on: { keydown: (event) => this.onKey(event), click: (event) => this.onClick(event) } },
      book.tree.map((symptom) => this.branch([symptom.name], say(symptom.text), symptom.questions.map((question) =>
        this.branch([symptom.name, question.family], say(question.text), question.leaves.map((rule) =>
          this.leaf([symptom.name, question.family, rule], say(book.rules[rule].title))))))));
    this.panel = el("section", { class: "panel", "aria-label": word("leaf") });
    this.lit = el("div", { class: "lit-list" });
    fill(main, el("h1", {}, word("tree-title")), el("p", { class: "lead" }, word("tree-lead")), this.lit, el("div", { class: "two" }, this.root, this.panel));
    this.focusable(this.root.querySelector("[role=treeitem]"));
    if (run) this.load(run);
  }

  branch(path, text, children) {
    const group = el("ul", { role: "group", hidden: true }, children);
    return this.item(path, text, { "aria-expanded": "false" }, group);
  }

  leaf(path, text) { return this.item(path, text, {}, null); }

  item(path, text, state, group) {
    const key = path.join(" ");
    const made = el("li", { role: "treeitem", tabindex: "-1", "data-path": key, "aria-selected": "false", "aria-level": path.length, "aria-label": text, ...state },
      el("span", { class: "label" }, el("span", { class: "twist", "aria-hidden": "true" }), el("span", {}, text), el("span", { class: "flag" })), group);
    this.items.set(key, made);
    return made;
  }

  // -- moving about

  visible() { return [...this.root.querySelectorAll("[role=treeitem]")].filter((item) => !item.parentElement.closest("[hidden]")); }

  focusable(item) {
    for (const other of this.root.querySelectorAll("[role=treeitem][tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
  }

  focus(item) {
    if (!item) return;
    this.focusable(item);
    item.focus({ preventScroll: true });
    item.firstChild.scrollIntoView({ block: "nearest" });
  }

  expand(item, open) {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(open));
    item.lastChild.hidden = !open;
  }

  onClick(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    this.focus(item);
    if (item.hasAttribute("aria-expanded")) this.expand(item, item.getAttribute("aria-expanded") !== "true");
    this.go(item);
  }

  go(item) { location.hash = link("tree", item.dataset.path.split(" ")); }

  onKey(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = this.visible(), at = rows.indexOf(item), open = item.getAttribute("aria-expanded");
    const moves = {
      ArrowDown: () => this.focus(rows[at + 1]), ArrowUp: () => this.focus(rows[at - 1]), Home: () => this.focus(rows[0]), End: () => this.focus(rows.at(-1)),
      ArrowRight: () => (open === "false" ? this.expand(item, true) : open === "true" ? this.focus(rows[at + 1]) : null),
      ArrowLeft: () => (open === "true" ? this.expand(item, false) : this.focus(item.parentElement.closest("[role=treeitem]"))),
      Enter: () => this.activate(item), " ": () => this.activate(item),
      "*": () => { for (const sibling of item.parentElement.children) this.expand(sibling, true); },
    };
    if (moves[event.key]) { event.preventDefault(); moves[event.key](); }
    else if (event.key.length === 1) this.type(event.key, rows, at);
  }

  activate(item) {
    if (item.hasAttribute("aria-expanded")) this.expand(item, item.getAttribute("aria-expanded") !== "true");
    this.go(item);
  }

  type(letter, rows, at) {
    clearTimeout(this.pause);
    this.pause = setTimeout(() => { this.typed = ""; }, PAUSE);
    this.typed += letter.toLowerCase();
    const after = [...rows.slice(at + (this.typed.length > 1 ? 0 : 1)), ...rows.slice(0, at + 1)];
    this.focus(after.find((row) => row.getAttribute("aria-label").toLowerCase().startsWith(this.typed)));
  }

  // -- the selection

  select(symptom, family, rule, seed) {
    for (const item of this.root.querySelectorAll("[aria-selected=true]")) item.setAttribute("aria-selected", "false");
    const path = [symptom, family, rule].filter(Boolean);
    const chosen = this.items.get(path.join(" "));
    for (let length = 1; length < path.length; length += 1) {
      const above = this.items.get(path.slice(0, length).join(" "));
      if (above) this.expand(above, true);
    }
    if (chosen) {
      chosen.setAttribute("aria-selected", "true");
      if (path.length < 3 && !this.root.contains(document.activeElement)) this.expand(chosen, true);
      this.focusable(chosen);
      if (!this.root.contains(document.activeElement)) chosen.firstChild.scrollIntoView({ block: "nearest" });
    }
    if (rule && this.book.rules[rule]) {
      this.showLeaf(rule, seed);
      if (matchMedia("(max-width: 52rem)").matches) this.panel.scrollIntoView();
    }
    else this.showHint(path, symptom, family);
  }

  showHint(path, symptom, family) {
    this.shown = null;
    const place = this.book.tree.find((one) => one.name === symptom);
    const question = place?.questions.find((one) => one.family === family);
    const next = question ? question.leaves.map((rule) => [[symptom, family, rule], say(this.book.rules[rule].title)])
      : place ? place.questions.map((one) => [[symptom, one.family], say(one.text)]) : [];
    fill(this.panel, el("h2", {}, question ? say(question.text) : place ? say(place.text) : word("tree-start")),
      el("p", {}, word(question ? "tree-causes" : place ? "tree-questions" : "tree-hint")),
      el("ul", {}, next.map(([to, text]) => el("li", {}, el("a", { href: link("tree", to) }, text)))));
  }

  async showLeaf(rule, seed) {
    const wanted = `${rule} ${seed}`;
    if (this.shown === wanted) return;
    this.shown = wanted;
    const about = this.book.rules[rule];
    const drawing = el("div", { "aria-busy": "true", class: "training" }, el("p", { role: "status" }, word("training")));
    const mine = el("div", {});
    detach(this.panel);
    fill(this.panel, el("h2", {}, say(about.title)), el("p", { class: "note" }, el("code", {}, rule), " · ", word(`level-${about.level}`)), prose(say(about.see)), drawing, mine, this.links(rule, about));
    this.showRun(mine, rule);
    try {
      const found = await this.source.leaf(rule, seed);
      if (this.shown === wanted && drawing.isConnected) this.draw(drawing, found, rule, seed);
    } catch (problem) {
      if (this.shown === wanted) fill(drawing, el("p", { class: "verdict error", role: "alert" }, say(problem.text ?? String(problem))));
    }
    drawing.removeAttribute("aria-busy");
  }

  draw(place, found, rule, seed) {
    const seeds = this.source.seeds ?? SEEDS;
    const another = seeds > 1 ? el("button", { type: "button", on: { click: () => turn({ seed: (seed + 1) % seeds || null }) } }, word("another-seed")) : null;
    fill(place, el("p", { class: "seeded" }, el("span", {}, word("seed-is", { seed })), another),
      found.chart ? figure(found.chart) : null, el("p", { class: "verdict warning" }, say(found.said)),
      el("p", {}, el("strong", {}, word("tool-says")), " ", say(found.cause)), say(found.place) ? el("p", {}, el("code", {}, say(found.place))) : null,
      found.evidence ? table(say(found.evidence.columns), say(found.evidence.rows), word("evidence")) : null);
    attach(place);
    place.dispatchEvent(new CustomEvent("drawn", { bubbles: true, detail: { rule, seed } }));
  }

  links(rule, about) {
    const labs = this.book.labs.filter((lab) => about.labs.includes(lab.name));
    const command = about.experiment ? `traindx exam --finding ${rule} SCRIPT` : `traindx run SCRIPT --select ${rule}`;
    return el("div", { class: "links" }, el("h3", {}, word("go-on")), el("ul", {},
      el("li", {}, el("a", { href: link("rules", [rule]) }, word("to-rule"))),
      labs.map((lab) => el("li", {}, el("a", { href: link("labs", [lab.name]) }, word("to-lab", { title: say(lab.title) })))),
      el("li", {}, about.experiment ? word("to-experiment", { title: say(about.experiment) }) : word("no-experiment"), el("pre", { tabindex: "0" }, command))));
  }

  // -- the reader's own run

  async load(run) {
    try {
      this.loaded = await this.source.run(run);
    } catch (problem) {
      fill(this.lit, el("p", { class: "verdict error" }, say(problem.text ?? String(problem))));
      return;
    }
    if (!this.root.isConnected) return;
    const found = this.loaded.findings.filter((finding) => this.book.rules[finding.rule]);
    for (const finding of found) this.light(finding);
    fill(this.lit, el("p", {}, el("strong", {}, word(found.length ? "lit" : "nothing-lit", { run }))), el("ul", {}, found.map((finding) => {
      const path = this.pathOf(finding.rule);
      return el("li", {}, path ? el("a", { href: link("tree", path) }, say(finding.title)) : say(finding.title), " ", el("code", {}, finding.place ?? word("no-place")));
    })));
    if (this.shown) {
      const place = this.panel.querySelector("[data-mine]");
      if (place) this.showRun(place, place.dataset.mine);
    }
  }

  pathOf(rule) {
    for (const key of this.items.keys()) if (key.split(" ")[2] === rule) return key.split(" ");
    return null;
  }

  light(finding) {
    for (const [key, item] of this.items) {
      const path = key.split(" ");
      if (path[2] !== finding.rule) continue;
      item.classList.add("lit");
      item.querySelector(".flag").textContent = finding.place ?? word("found-here");
      for (const length of [1, 2]) {
        const above = this.items.get(path.slice(0, length).join(" "));
        above.classList.add("lit");
      }
    }
  }

  showRun(place, rule) {
    place.dataset.mine = rule;
    if (!this.loaded) return;
    const found = this.loaded.findings.filter((finding) => finding.rule === rule);
    const curve = this.loaded.figures.find((spec) => spec.series === "loss");
    detach(place);
    fill(place, el("h3", {}, word("your-run", { run: this.run })), found.length ? found.map((finding) => el("div", { class: "finding" },
      el("p", {}, el("a", { href: link("runs", [this.run]) }, el("code", {}, finding.place ?? word("no-place"))), " ", say(finding.cause)))) : el("p", {}, word("not-in-run")),
      curve ? figure(curve) : null);
    attach(place);
  }
}
