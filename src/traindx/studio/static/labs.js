// The labs: knobs on one side, what they make on the other. Any lab is drawn from its description alone.

import { amend, link } from "./address.js";
import { el, fill, inline, table } from "./dom.js";
import { attach, figure, redraw } from "./figures.js";
import { say, word } from "./words.js";

const KEPT = 200; // outcomes of the lab on the page that are remembered
const PATIENCE = 120; // milliseconds that a knob of a slow lab rests before it is asked
const BUSY = 250; // milliseconds after which a page that waits says so

export function labList(main, book) {
  const cards = book.labs.map((lab) => el("li", {}, el("a", { class: "card", href: link("labs", [lab.name]) },
    el("span", { class: "count" }, String(lab.number)), el("strong", {}, say(lab.title)), el("span", { class: "note" }, firstSentence(say(lab.about))))));
  fill(main, el("h1", {}, word("labs")), el("p", { class: "lead" }, word("labs-lead")), el("ol", { class: "cards" }, cards));
}

function firstSentence(text) {
  return /^.*?[.。!！?？](?=\s|$|[\u3000-\u9fff])/.exec(text)?.[0] ?? text;
}

export function labPage(main, book, source, name, query) {
  const lab = book.labs.find((one) => one.name === name);
  if (!lab) {
    fill(main, el("h1", {}, word("labs")), el("p", {}, word("no-lab", { name })), el("p", {}, el("a", { href: link("labs") }, word("all-labs"))));
    return;
  }
  const verdict = el("p", { class: "verdict", role: "status" });
  const figures = el("div", { class: "figures" });
  const tables = el("div", { class: "tables" });
  const bench = new Bench(lab, source, query, { verdict, figures, tables });
  fill(main, beside(book, lab), el("h1", {}, `${lab.number}  ${say(lab.title)}`), el("p", { class: "lead" }, inline(say(lab.about))),
    el("div", { class: "bench" }, el("form", { class: "knobs", "aria-label": word("knobs"), on: { submit: (event) => event.preventDefault() } }, bench.controls()),
      el("div", { class: "result" }, verdict, figures, tables)),
    el("section", { class: "lessons" }, [["see", lab.see], ["break", lab.break], ["then", lab.then]].map(([head, text]) => el("div", {}, el("h2", {}, word(head)), el("p", {}, inline(say(text)))))),
    lab.rules.length ? el("section", {}, el("h2", {}, word("lab-rules")), ruleList(book, lab.rules)) : null,
    lab.sources.length ? el("section", {}, el("h2", {}, word("sources")), el("ul", {}, lab.sources.map((text) => el("li", {}, text)))) : null);
  bench.ask();
}

function beside(book, lab) {
  const at = book.labs.indexOf(lab);
  const [before, after] = [book.labs[at - 1], book.labs[at + 1]];
  return el("nav", { class: "beside", "aria-label": word("beside") }, before ? el("a", { href: link("labs", [before.name]), rel: "prev" }, `← ${say(before.title)}`) : el("span"),
    el("a", { href: link("labs") }, word("all-labs")), after ? el("a", { href: link("labs", [after.name]), rel: "next" }, `${say(after.title)} →`) : el("span"));
}

export function ruleList(book, names) {
  return el("ul", { class: "rules" }, names.filter((name) => book.rules[name]).map((name) => el("li", {},
    el("a", { href: link("rules", [name]) }, el("code", {}, name)), " ", say(book.rules[name].title))));
}

/** The state of one lab on the page: its knobs, the question that is under way, the outcomes that are known. */
class Bench {
  constructor(lab, source, query, places) {
    this.lab = lab;
    this.source = source;
    this.places = places;
    this.state = Object.fromEntries(lab.knobs.map((knob) => [knob.name, nearest(knob, query[knob.name])]));
    this.known = new Map();
    this.asked = 0;
    this.underWay = false;
    this.inputs = new Map();
    this.onMark = { value: (knob, value) => this.drag(knob, value), step: (knob, by) => this.step(knob, by), position: (knob) => this.position(knob) };
  }

  controls() {
    const made = this.lab.knobs.map((knob) => ({ slider: slider, choice: choice, switch: toggle })[knob.kind](knob, this));
    const again = el("button", { type: "button", on: { click: () => this.reset() } }, word("reset"));
    return [...made, el("p", { class: "buttons" }, again)];
  }

  set(name, value, quiet = false) {
    if (this.state[name] === value) return;
    this.state = { ...this.state, [name]: value };
    this.inputs.get(name)?.(value);
    amend({ [name]: value === this.knob(name).default ? null : String(value) });
    if (!quiet) this.ask();
  }

  knob(name) { return this.lab.knobs.find((knob) => knob.name === name); }

  reset() {
    for (const knob of this.lab.knobs) this.set(knob.name, knob.default, true);
    this.ask();
  }

  drag(name, value) {
    if (Number.isFinite(value)) this.set(name, nearest(this.knob(name), value));
  }

  step(name, by) {
    const { values } = this.knob(name);
    this.set(name, values[Math.max(0, Math.min(values.length - 1, values.indexOf(this.state[name]) + by))]);
  }

  position(name) {
    const { values, says } = this.knob(name);
    const at = values.indexOf(this.state[name]);
    return { min: 0, max: values.length - 1, now: at, text: say(says[at]) };
  }

  /** A light lab is asked as soon as it has answered; a slow one once its knobs rest, and what it computes is dropped. */
  ask() {
    const key = JSON.stringify(this.state);
    if (this.known.has(key)) {
      this.asked += 1;
      this.show(this.known.get(key));
    } else if (!this.lab.light) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.send(key), this.asked ? PATIENCE : 0);
    } else if (!this.underWay) {
      this.send(key);
    }
  }

  async send(key) {
    const mine = ++this.asked;
    this.underWay = true;
    clearTimeout(this.late);
    this.late = setTimeout(() => this.places.figures.setAttribute("aria-busy", "true"), BUSY);
    try {
      const outcome = await this.source.lab(this.lab.name, this.state);
      if (this.known.size >= KEPT) this.known.delete(this.known.keys().next().value);
      this.known.set(key, outcome);
      if (mine === this.asked) this.show(outcome);
    } catch (problem) {
      if (mine === this.asked) this.complain(problem);
    } finally {
      if (mine === this.asked) {
        clearTimeout(this.late);
        this.places.figures.removeAttribute("aria-busy");
      }
      this.underWay = false;
      if (this.lab.light && JSON.stringify(this.state) !== key && this.places.figures.isConnected) this.ask();
    }
  }

  complain(problem) {
    this.places.verdict.className = "verdict error";
    this.places.verdict.textContent = say(problem.text ?? String(problem.message ?? problem));
  }

  show(outcome) {
    const { verdict, figures, tables } = this.places;
    if (!figures.isConnected) return;
    verdict.className = `verdict ${outcome.level}`;
    verdict.textContent = say(outcome.verdict);
    const drawn = [...figures.children];
    if (drawn.length !== outcome.figures.length || !outcome.figures.every((spec, at) => redraw(drawn[at], spec))) {
      fill(figures, outcome.figures.map((spec) => figure(spec, { onMark: this.onMark })));
      attach(figures);
    }
    fill(tables, outcome.tables.map((one) => table(say(one.columns), say(one.rows), say(one.caption) || word("table"))));
    figures.dispatchEvent(new CustomEvent("drawn", { bubbles: true, detail: outcome.state }));
  }
}

/** A knob's position for a value from outside. */
function nearest(knob, wanted) {
  if (wanted === undefined || wanted === null) return knob.default;
  if (knob.kind === "switch") return wanted === true || wanted === "true";
  if (knob.kind === "choice") return knob.values.includes(wanted) ? wanted : knob.default;
  const aim = Number(wanted);
  if (!Number.isFinite(aim)) return knob.default;
  const far = knob.values[0] > 0 && knob.values.at(-1) / knob.values[0] > 50 && aim > 0 ? (value) => Math.abs(Math.log(value / aim)) : (value) => Math.abs(value - aim);
  return knob.values.reduce((best, value) => (far(value) < far(best) ? value : best));
}

function slider(knob, bench) {
  const id = `knob-${knob.name}`;
  const value = el("output", { for: id });
  const input = el("input", { type: "range", id, min: 0, max: knob.values.length - 1, step: 1, on: { input: () => bench.set(knob.name, knob.values[Number(input.value)]) } });
  const show = (now) => {
    const at = knob.values.indexOf(now);
    input.value = at;
    value.textContent = say(knob.says[at]);
    input.setAttribute("aria-valuetext", say(knob.says[at]));
  };
  bench.inputs.set(knob.name, show);
  show(bench.state[knob.name]);
  const other = knob.name === "seed" ? el("button", { type: "button", on: { click: () => bench.set("seed", knob.values[(knob.values.indexOf(bench.state.seed) + 1) % knob.values.length]) } }, word("another-seed")) : null;
  return el("div", { class: "knob" }, el("label", { for: id }, say(knob.label)), value, input, other);
}

function choice(knob, bench) {
  const radios = knob.values.map((value, at) => {
    const input = el("input", { type: "radio", name: `knob-${knob.name}`, value, on: { change: () => bench.set(knob.name, value) } });
    return { value, input, label: el("label", { class: "option" }, input, el("span", {}, say(knob.says[at]))) };
  });
  const show = (now) => { for (const radio of radios) radio.input.checked = radio.value === now; };
  bench.inputs.set(knob.name, show);
  show(bench.state[knob.name]);
  return el("fieldset", { class: "knob" }, el("legend", {}, say(knob.label)), radios.map((radio) => radio.label));
}

function toggle(knob, bench) {
  const input = el("input", { type: "checkbox", on: { change: () => bench.set(knob.name, input.checked) } });
  const show = (now) => { input.checked = now; };
  bench.inputs.set(knob.name, show);
  show(bench.state[knob.name]);
  return el("div", { class: "knob" }, el("label", { class: "option" }, input, el("span", {}, say(knob.label))));
}
