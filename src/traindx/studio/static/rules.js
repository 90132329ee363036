// The rules: all of them by family, and one page each with its two small programs.

import { link } from "./address.js";
import { el, fill, prose } from "./dom.js";
import { say, word } from "./words.js";

export function ruleIndex(main, book) {
  const families = new Map();
  for (const name of Object.keys(book.rules)) {
    const family = name.split("/")[0];
    families.set(family, [...(families.get(family) ?? []), name]);
  }
  const items = [];
  const sections = [...families].map(([family, names]) => el("section", {}, el("h2", {}, word(`family-${family}`), " ", el("code", { class: "note" }, family)), el("ul", { class: "rules" }, names.map((name) => {
    const item = el("li", {}, el("a", { href: link("rules", [name]) }, el("code", {}, name)), " ", say(book.rules[name].title));
    items.push({ item, text: `${name} ${say(book.rules[name].title)}`.toLowerCase() });
    return item;
  }))));
  const search = el("input", { type: "search", id: "find-rule", on: { input: () => {
    const wanted = search.value.trim().toLowerCase();
    for (const { item, text } of items) item.hidden = !text.includes(wanted);
    for (const section of sections) section.hidden = [...section.querySelectorAll("li")].every((item) => item.hidden);
  } } });
  fill(main, el("h1", {}, word("rules")), el("p", { class: "lead" }, word("rules-lead", { count: items.length })),
    el("p", { class: "find" }, el("label", { for: "find-rule" }, word("find-rule")), search), sections);
}

export async function rulePage(main, book, source, name) {
  const known = book.rules[name];
  if (!known) {
    fill(main, el("h1", {}, word("rules")), el("p", {}, word("no-rule", { name })), el("p", {}, el("a", { href: link("rules") }, word("all-rules"))));
    return;
  }
  const body = el("div", {}, el("p", { role: "status" }, word("loading")));
  const places = book.tree.flatMap((symptom) => symptom.questions.filter((question) => question.leaves.includes(name)).map((question) => [symptom, question]));
  fill(main, el("nav", { class: "beside", "aria-label": word("beside") }, el("a", { href: link("rules") }, `← ${word("all-rules")}`)),
    el("h1", {}, say(known.title)), el("p", { class: "note" }, el("code", {}, name), " · ", word(`level-${known.level}`), " · ", word("at-step", { step: known.step })), body,
    el("section", {}, el("h2", {}, word("in-tree")), places.length ? el("ul", {}, places.map(([symptom, question]) => el("li", {}, el("a", { href: link("tree", [symptom.name, question.family, name]) }, say(symptom.text))))) : el("p", {}, word("not-in-tree"))),
    known.labs.length ? el("section", {}, el("h2", {}, word("in-labs")), el("ul", {}, labsOf(book, known).map((lab) => el("li", {}, el("a", { href: link("labs", [lab.name]) }, `${lab.number} ${say(lab.title)}`))))) : null,
    el("section", {}, el("h2", {}, word("commands")), el("pre", { tabindex: "0" }, `traindx explain ${name}\ntraindx run SCRIPT --select ${name}\n${known.experiment ? `traindx exam --finding ${name} SCRIPT` : ""}`.trim())));
  const page = await source.rule(name);
  if (!body.isConnected) return;
  fill(body, say(page.sections).map(([head, text]) => el("section", {}, el("h2", {}, head), prose(text))), program(word("bad-program"), page.bad), program(word("good-program"), page.good));
}

function labsOf(book, rule) {
  return book.labs.filter((lab) => rule.labs.includes(lab.name));
}

function program(title, text) {
  const lines = text.replace(/\n$/, "").split("\n").map((line) => {
    const guilty = line.includes("# expect:");
    return el("span", { class: guilty ? "guilty" : null }, `${line.split("# expect:")[0].trimEnd()}\n`);
  });
  return el("details", {}, el("summary", {}, title), el("pre", { tabindex: "0" }, lines));
}
