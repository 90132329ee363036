// Elements made from data. Text only ever becomes text: nothing here parses markup.

const NUMBER = /^[-−+\d.,/eE∞±… %]+$/; // a cell that is not to be broken into lines
const SVG = "http://www.w3.org/2000/svg";

/** An element; `props`: attributes, `class`, `on` = {event: handler}; children: elements, strings, null, or lists of these. */
export function el(tag, props = {}, ...children) {
  const made = tag === "svg" || tag === "path" ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return parent;
}

/** A table that scrolls on its own where it is wider than the page. */
export function table(columns, rows, caption) {
  const head = el("tr", {}, columns.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((row) => el("tr", {}, row.map((cell) => el("td", { class: NUMBER.test(cell) ? "number" : null }, cell))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body)));
}

/** Prose of a rule's page: blank lines part paragraphs, indented lines are code, `words` in backticks are code. */
export function prose(text) {
  const parts = [];
  for (const block of text.replaceAll("``", "`").split(/\n\s*\n/)) {
    if (/^ {2,}/.test(block)) parts.push(el("pre", { tabindex: "0" }, block.replace(/^ {2,4}/gm, "")));
    else parts.push(...paragraphs(block));
  }
  return parts;
}

function paragraphs(block) {
  const found = [];
  let lines = [], indented = false;
  const flush = () => {
    if (lines.length) found.push(indented ? el("pre", { tabindex: "0" }, lines.map((line) => line.replace(/^ {2,4}/, "")).join("\n")) : el("p", {}, inline(joined(lines))));
    lines = [];
  };
  for (const line of block.split("\n")) {
    if (/^ {2,}/.test(line) !== indented) { flush(); indented = !indented; }
    lines.push(line);
  }
  flush();
  return found;
}

/** Lines of a paragraph as one; between two Chinese letters a line break is no space. */
function joined(lines) {
  return lines.reduce((text, line) => text + (/[\u3000-\u9fff\uff00-\uffef]$/.test(text) && /^[\u3000-\u9fff\uff00-\uffef]/.test(line) ? "" : " ") + line.trim(), "").trim();
}

export function inline(text) {
  return text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
}
