// Figures: a chart by Plotly with a legend of our own, a grid as a table; a text and a table behind each curve.

import { el, fill, table } from "./dom.js";
import { loadPlotly } from "./socket.js";
import { number, say, word } from "./words.js";

const ROWS = 200; // of the table behind a curve
const LINE = 17; // pixels of one row of labels
const HEIGHT = 210; // pixels of what is drawn between the axes, about
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };

/** A figure's element. `onMark(knob, value)` is called while a mark is dragged; `zoom` lets the pointer select a range. */
export function figure(spec, options = {}) {
  return spec.kind === "grid" ? gridFigure(spec) : chartFigure(spec, options);
}

/** Shows another state in an element that `figure` made; false where it is of another kind. */
export function redraw(element, spec) {
  if (element.dataset.kind !== spec.kind) return false;
  element.redraw(spec);
  return true;
}

/** Plotly is large: the page shows its text first, and draws once it has come. */
const plotly = loadPlotly();

// -- charts ---------------------------------------------------------------------------------------------------------------

function chartFigure(first, options) {
  const caption = el("figcaption");
  const legend = el("ul", { class: "legend" });
  const canvas = el("div", { class: "canvas", role: "img" });
  const plot = el("div", { class: "plot" }, canvas);
  const behind = el("details", { class: "behind", on: { toggle: () => tell() } }, el("summary", {}, word("behind")));
  const made = el("figure", { "data-kind": "chart" }, caption, legend, plot, behind);
  let spec = first;
  let handles = [];

  function tell() {
    if (behind.open) fill(behind, behind.firstChild, el("p", {}, described(spec)), numbers(spec));
  }

  made.redraw = (next) => {
    spec = next;
    const shown = say({ data: spec.data, layout: spec.layout });
    caption.textContent = shown.layout.title.text;
    fill(legend, shown.data.length > 1 ? different(shown.data).map(entry) : [], bandOf(shown));
    canvas.setAttribute("aria-label", described(spec));
    tell();
    if (!made.isConnected) return;
    if (window.Plotly) draw(shown);
    else plotly.then(() => { if (spec === next && made.isConnected) draw(shown); });
  };

  function draw(shown) {
    const isNew = !canvas._fullLayout;
    Plotly.react(canvas, shown.data.map(styled), themed(shown, canvas.clientWidth, options), CONFIG);
    const settle = () => {
      handles = place(plot, canvas, spec, handles, options.onMark);
      for (const svg of canvas.querySelectorAll(".main-svg")) svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`); // paper is narrower
    };
    if (isNew) canvas.on("plotly_afterplot", settle); // also after its size has changed
    settle();
  }

  made.attach = () => { made.redraw(spec); };
  made.detach = () => { if (window.Plotly) Plotly.purge(canvas); };
  return made;
}

/** Runs that differ in their seed only share name and colour, and one entry. */
function different(traces) {
  return traces.filter((trace, at) => traces.findIndex((other) => other.name === trace.name && other.marker.color === trace.marker.color) === at);
}

function entry(trace) {
  const colour = trace.marker.color;
  const mode = trace.type === "bar" ? "bar" : trace.mode.startsWith("lines") ? (trace.line.dash === "dash" ? "dash" : "line") : trace.marker.symbol === "x" ? "cross" : "dot";
  return el("li", {}, el("i", { class: `swatch ${mode}`, style: `color: ${colour}`, "aria-hidden": "true" }), trace.name);
}

const isBand = (note) => note.xref === "paper" && note.x === 0;

/** The usual range is told beside the chart: in it, its label would often lie outside of what is drawn. */
function bandOf(shown) {
  return (shown.layout.annotations ?? []).filter(isBand).map((note) => el("li", {}, el("i", { class: "swatch band", "aria-hidden": "true" }), note.text));
}

function styled(trace) {
  return { hovertemplate: "%{x:.4~g}, %{y:.4~g}<extra>%{fullData.name}</extra>", ...trace };
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  return { ink: style.getPropertyValue("--ink").trim(), rule: style.getPropertyValue("--grid").trim(), paper: style.getPropertyValue("--card").trim() };
}

function themed(shown, width, options) {
  const { ink, rule, paper } = colours();
  const font = { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink };
  const axis = (given, letter) => ({ ...given, ...(given.type === "log" ? logTicks(span(shown, letter), width < 420 ? 4 : 6) : {}), autotickangles: [0, -45, -90], gridcolor: rule, linecolor: rule, zerolinecolor: rule, automargin: true, nticks: width < 420 ? 5 : 8,
    title: { ...given.title, standoff: 10, font: { size: 13 } },
    fixedrange: !options.zoom, hoverformat: ".4~g" });
  const layout = shown.layout;
  const { notes, levels } = staggered((layout.annotations ?? []).filter((note) => !isBand(note)), shown, width);
  return { ...layout, title: undefined, showlegend: false, font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", xaxis: axis(layout.xaxis, "x"), yaxis: axis(layout.yaxis, "y"),
    margin: { l: 56, r: 16, t: 12 + LINE * levels, b: 48 }, dragmode: options.zoom ? "zoom" : false, hovermode: "closest", hoverlabel: { bgcolor: paper, font: { color: ink } },
    annotations: notes.map((note) => ({ ...note, ...spotOf(note, shown, width), bgcolor: `${paper}cc`, borderpad: 0, font: { size: 12, color: ink } })), uirevision: options.zoom ? "kept" : undefined };
}

/** Labels of vertical marks in as many rows as keep them from covering each other, and inside of the chart. */
function staggered(annotations, shown, width) {
  const [low, high] = span(shown, "x");
  const room = Math.max(width - 90, 100);
  const ends = [];
  const above = annotations.filter((note) => note.yref === "paper" && note.y === 1).sort((a, b) => a.x - b.x);
  const rows = new Map();
  for (const note of above) {
    const at = ((note.x - low) / (high - low || 1)) * room;
    const long = breadth(note.text);
    const left = Math.max(0, Math.min(at - long / 2, room - long));
    let level = ends.findIndex((end) => end + 8 < left);
    if (level < 0) level = ends.push(0) - 1;
    ends[level] = left + long;
    rows.set(note, { yshift: level * LINE, xshift: left + long / 2 - at });
  }
  return { notes: annotations.map((note) => ({ ...note, ...rows.get(note) })), levels: ends.length };
}

const ENDS = { right: 1, left: 0, center: 0.5 };
const SPOTS = ["bottom", "top"].flatMap((touching) => Object.keys(ENDS).map((end) => [end, touching])); // the side of the label that touches the line

/** The label of a horizontal mark, at that place along its line and on that side of it where the curves leave most room. */
function spotOf(note, shown, width) {
  if (note.xref !== "paper" || note.x !== 1) return {};
  const [low, high] = span(shown, "y");
  const room = Math.max(width - 90, 100);
  const at = (note.y - low) / (high - low || 1);
  const long = Math.min(1, (breadth(note.text) + 6) / room), tall = LINE / HEIGHT;
  const upright = (shown.layout.shapes ?? []).filter((shape) => shape.yref === "paper").map((shape) => shareOf(shown, "x")(shape.x0));
  const points = [...shown.data.flatMap((trace) => drawn(trace, shown)), ...upright.flatMap((x) => between([x, 0], [x, 1]))];
  const covered = ([end, touching]) => {
    const [left, foot] = [ENDS[end] * (1 - long), touching === "bottom" ? at : at - tall];
    if (foot < 0 || foot + tall > 1.1) return Infinity;
    return points.filter(([x, y]) => x >= left && x <= left + long && y > foot + tall / 8 && y < foot + tall).length;
  };
  const [end, touching] = SPOTS.map((spot) => [covered(spot), spot]).reduce((a, b) => (b[0] < a[0] ? b : a))[1];
  return { x: ENDS[end], xanchor: end, yanchor: touching, yshift: touching === "bottom" ? 2 : -2 };
}

/** Places that a trace covers, close enough to each other, as shares of the width and height of the picture. */
function drawn(trace, shown) {
  const [across, up] = [shareOf(shown, "x"), shareOf(shown, "y")];
  const points = trace.x.map((x, at) => [across(x), up(trace.y[at])]);
  if (trace.type === "bar") return points.flatMap(([x, y], at) => [-0.4, 0, 0.4].flatMap((by) => between([across(trace.x[at] + by), up(0)], [across(trace.x[at] + by), y])));
  return trace.mode.startsWith("lines") ? points.flatMap((point, at) => (at ? between(points[at - 1], point) : [point])) : points;
}

/** How far along an axis a value lies, from 0 to 1. */
function shareOf(shown, letter) {
  const [low, high] = span(shown, letter);
  return (value) => ((shown.layout[`${letter}axis`].type === "log" ? Math.log10(value) : value) - low) / (high - low || 1);
}

function between([x, y], [toX, toY]) {
  return Array.from({ length: 20 }, (_, at) => [x + ((toX - x) * (at + 1)) / 20, y + ((toY - y) * (at + 1)) / 20]);
}

const pen = document.createElement("canvas").getContext("2d");

/** Pixels of a label. */
function breadth(text) {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** The range of an axis as it will be drawn, in the units of annotations (decades where it is logarithmic). */
function span(shown, letter) {
  const axis = shown.layout[`${letter}axis`];
  if (axis.range) return axis.range;
  const across = letter === "x" ? "paper" : undefined;
  const lines = (shown.layout.shapes ?? []).filter((shape) => shape.yref === across && shape.type === "line");
  const values = [...shown.data.flatMap((trace) => trace[letter]), ...lines.map((shape) => shape[`${letter}0`])];
  const seen = values.filter((value) => Number.isFinite(value) && (axis.type !== "log" || value > 0)).map((value) => (axis.type === "log" ? Math.log10(value) : value));
  return seen.length ? [seen.reduce((a, b) => Math.min(a, b)), seen.reduce((a, b) => Math.max(a, b))] : [0, 1];
}

/** Whole decades where there are several of them, `most` at most; else 1, 2 and 5 of each, written out. */
function logTicks([low, high], most) {
  const size = Math.abs(high - low);
  const values = [];
  if (size >= 2.5) {
    const by = Math.ceil(size / most);
    for (let decade = Math.ceil(Math.min(low, high) / by - 1) * by; decade <= Math.max(low, high) + by; decade += by) values.push(decade);
    return { tickmode: "array", tickvals: values.map((decade) => 10 ** decade), ticktext: values.map(power) };
  }
  for (let decade = Math.floor(Math.min(low, high)) - 1; decade <= Math.ceil(Math.max(low, high)) + 1; decade += 1) {
    values.push(...(size > 0.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7]).map((digit) => digit * 10 ** decade));
  }
  return { tickmode: "array", tickvals: values, ticktext: values.map((value) => number(value)) };
}

/** Plotly would write powers in larger letters than other numbers. */
function power(decade) {
  return decade === 0 ? "1" : decade === 1 ? "10" : `10<sup>${String(decade).replace("-", "−")}</sup>`;
}

// -- marks that are dragged -----------------------------------------------------------------------------------------------

/** One handle over each mark that moves a knob: dragged by the pointer, or by the arrow keys, through `onMark.step`. */
function place(plot, canvas, spec, before, onMark) {
  const marks = onMark ? spec.marks ?? [] : [];
  const handles = marks.map((mark, at) => before[at] ?? handle(plot, canvas, onMark));
  for (const gone of before.slice(marks.length)) gone.remove();
  handles.forEach((made, at) => {
    const axis = canvas._fullLayout.xaxis;
    made.mark = marks[at];
    made.style.left = `${axis._offset + axis.d2p(marks[at].at)}px`;
    const { min, max, now, text } = onMark.position(marks[at].knob);
    for (const [name, value] of Object.entries({ "aria-label": say(marks[at].label) || marks[at].knob, "aria-valuemin": min, "aria-valuemax": max, "aria-valuenow": now, "aria-valuetext": text })) {
      made.setAttribute(name, value);
    }
  });
  return handles;
}

function handle(plot, canvas, onMark) {
  const made = el("div", { class: "handle", role: "slider", tabindex: "0" });
  const follow = (event) => {
    const axis = canvas._fullLayout.xaxis;
    onMark.value(made.mark.knob, axis.p2d(event.clientX - canvas.getBoundingClientRect().left - axis._offset));
  };
  made.addEventListener("pointerdown", (event) => { made.setPointerCapture(event.pointerId); event.preventDefault(); made.focus(); });
  made.addEventListener("pointermove", (event) => { if (made.hasPointerCapture(event.pointerId)) follow(event); });
  made.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5, Home: -1e6, End: 1e6 }[event.key];
    if (by !== undefined) { event.preventDefault(); onMark.step(made.mark.knob, by); }
  });
  plot.append(made);
  return made;
}

// -- the same in words and numbers ----------------------------------------------------------------------------------------

export function described(spec) {
  const { data, layout } = say({ data: spec.data, layout: spec.layout });
  const head = word("described", { title: layout.title.text, x: layout.xaxis.title.text, y: layout.yaxis.title.text, log: layout.yaxis.type === "log" ? word("logarithmic") : "" });
  return [head, ...data.map(curveInWords)].join(" ");
}

function curveInWords(trace) {
  const seen = trace.y.map((y, at) => [trace.x[at], y]).filter(([, y]) => Number.isFinite(y));
  if (!seen.length) return word("curve-empty", { name: trace.name });
  if (seen.length === 1) return word("curve-point", { name: trace.name, x: number(seen[0][0]), y: number(seen[0][1]) });
  const low = seen.reduce((a, b) => (b[1] < a[1] ? b : a)), high = seen.reduce((a, b) => (b[1] > a[1] ? b : a));
  return word("curve-said", { name: trace.name, first: number(seen[0][1]), last: number(seen.at(-1)[1]), from: number(seen[0][0]), to: number(seen.at(-1)[0]),
    low: number(low[1]), low_at: number(low[0]), high: number(high[1]), high_at: number(high[0]) });
}

function numbers(spec) {
  const { data, layout } = say({ data: spec.data, layout: spec.layout });
  const x = layout.xaxis.title.text;
  const values = new Map();
  data.forEach((trace, at) => trace.x.forEach((place, i) => {
    if (!values.has(place)) values.set(place, Array(data.length).fill(null));
    values.get(place)[at] = trace.y[i];
  }));
  const rows = [...values.entries()].sort((a, b) => a[0] - b[0]);
  const every = Math.max(1, Math.ceil(rows.length / ROWS));
  const kept = rows.filter((row, at) => at % every === 0);
  const caption = every > 1 ? word("every-nth", { n: every }) : word("all-values");
  return table([x, ...data.map((trace) => trace.name)], kept.map(([place, row]) => [number(place, 4), ...row.map((value) => number(value, 4))]), caption);
}

// -- grids ----------------------------------------------------------------------------------------------------------------

function gridFigure(first) {
  const made = el("figure", { "data-kind": "grid" });
  made.redraw = (given) => {
    const spec = say(given);
    const heads = spec.columns.length ? el("tr", {}, spec.rows.length ? el("td") : null, spec.columns.map((text) => el("th", { scope: "col" }, text))) : null;
    const rows = spec.cells.map((row, r) => el("tr", {}, spec.rows.length ? el("th", { scope: "row" }, spec.rows[r]) : null,
      row.map((cell, c) => el("td", { class: `shade ${spec.shades[r]?.[c] ?? "plain"}` }, cell))));
    const inner = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": spec.title }, el("table", { class: "cells" }, heads ? el("thead", {}, heads) : null, el("tbody", {}, rows)));
    fill(made, el("figcaption", {}, spec.title), inner, spec.caption ? el("p", { class: "note" }, spec.caption) : null);
  };
  made.attach = () => {};
  made.detach = () => {};
  made.redraw(first);
  return made;
}

/** Draws the charts below `root`, once it is in the page. */
export function attach(root) { for (const made of root.querySelectorAll("figure[data-kind]")) made.attach(); }

export function detach(root) { for (const made of root.querySelectorAll("figure[data-kind]")) made.detach(); }
