// The reader's own runs: the list, one of them (live while it runs), several over each other.

import { amend, here, link, turn } from "./address.js";
import { el, fill, table } from "./dom.js";
import { attach, detach, figure, redraw } from "./figures.js";
import { say, word } from "./words.js";

const LINES = ["best", "failed hypothesis", "next"];
const JUDGE = 10000; // milliseconds after which a running run is judged anew
const STATES = ["running", "finished", "failed", "killed", "unknown"];

export async function runList(main, book, source) {
  const place = el("div", {}, el("p", { role: "status" }, word("loading")));
  fill(main, el("h1", {}, word("runs")), place);
  const { folder, runs } = await source.runs();
  if (!place.isConnected) return;
  if (!runs.length) {
    fill(place, el("p", { class: "lead" }, word("no-runs", { folder })), el("pre", { tabindex: "0" }, "traindx run train.py"));
    return;
  }
  const query = here().query;
  const search = el("input", { type: "search", id: "find-run", value: query.q ?? "", on: { input: () => sift() } });
  const status = el("select", { id: "run-status", on: { change: () => sift() } }, el("option", { value: "" }, word("any-status")),
    STATES.map((name) => el("option", { value: name, selected: query.status === name }, word(`status-${name}`))));
  const open = el("input", { type: "checkbox", checked: query.open === "1", on: { change: () => sift() } });
  const compare = el("button", { type: "button", disabled: true, on: { click: () => { location.hash = link("compare", chosen().map((row) => row.run)); } } }, word("compare"));
  const marks = new Map(runs.map((row) => [row, el("input", { type: "checkbox", "aria-label": word("choose", { run: row.run }), on: { change: () => { compare.disabled = chosen().length < 2; } } })]));
  const chosen = () => runs.filter((row) => marks.get(row).checked);
  const lines = new Map(runs.map((row) => [row, el("tr", {}, el("td", {}, marks.get(row)), el("td", {}, el("a", { href: link("runs", [row.run]) }, row.run)), el("td", { class: "breaks" }, row.script), el("td", {}, say(row.state)),
    el("td", {}, String(row.steps)), el("td", {}, row.best), el("td", {}, row.findings === null ? "–" : String(row.findings)), el("td", {}, word(row.concluded ? "concluded" : "not-concluded")))]));
  const count = el("p", { class: "note", role: "status" });
  function sift() {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const [row, line] of lines) {
      line.hidden = !(`${row.run} ${row.script}`.toLowerCase().includes(wanted) && row.status.startsWith(status.value) && !(open.checked && row.concluded));
      shown += line.hidden ? 0 : 1;
    }
    count.textContent = word("run-count", { shown, all: runs.length, folder });
    amend({ q: search.value.trim() || null, status: status.value || null, open: open.checked ? "1" : null });
  }
  const heads = ["choose-head", "run", "script", "status", "steps", "best-value", "findings", "conclusion"].map((name) => el("th", { scope: "col" }, word(name)));
  fill(place, el("div", { class: "find" }, el("div", { class: "pair" }, el("label", { for: "find-run" }, word("find-run")), search), el("div", { class: "pair" }, el("label", { for: "run-status" }, word("status")), status),
    el("label", { class: "option" }, open, el("span", {}, word("open-only"))), compare), count,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": word("runs") }, el("table", { class: "runs" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, [...lines.values()]))));
  sift();
}

// -- one run --------------------------------------------------------------------------------------------------------------

export async function runPage(main, book, source, name) {
  const place = el("div", {}, el("p", { role: "status" }, word("loading")));
  fill(main, el("nav", { class: "beside", "aria-label": word("beside") }, el("a", { href: link("runs") }, `← ${word("all-runs")}`)), el("h1", { class: "breaks" }, name), place);
  const run = await source.run(name);
  if (!place.isConnected) return;
  const state = el("p", { class: "note", role: "status" });
  const findings = el("section", {});
  const figures = el("div", { class: "figures" });
  const alarms = el("div", {});
  const tried = [refutedOf(book, run.refuted), examOf(run.exam)];
  fill(place, state, run.remarks.map((text) => el("p", { class: "verdict warning" }, say(text))),
    el("p", { class: "buttons" }, here().query.run === name ? null : el("button", { type: "button", on: { click: () => { turn({ run: name }); location.hash = link("tree"); } } }, word("load-into-tree"))),
    findings, tried[0], el("section", {}, el("h2", {}, word("curves")), alarms, figures), tried[1], notesOf(source, name, run.notes), checklistOf(source, name),
    run.pages.length ? el("section", {}, el("h2", {}, word("pages")), el("ul", {}, run.pages.map((page) => el("li", {}, el("a", { href: source.pageUrl(name, page), target: "_blank", rel: "noopener" }, page))))) : null,
    el("section", {}, el("h2", {}, word("what-ran")), table([word("what"), word("value")], [...say(run.facts), ...say(run.config)], word("what-ran"))));
  show(run);
  judge(run);
  for (const section of tried) attach(section);

  function show(news) {
    const steps = word("at-steps", { steps: news.steps });
    state.textContent = news.read < 1 ? word("reading", { share: Math.round(100 * news.read) }) : `${say(news.state)} · ${steps}`;
    const drawn = [...figures.children];
    if (!news.figures.length) fill(figures, el("p", {}, word("no-curves")));
    else if (drawn.length !== news.figures.length || !news.figures.every((spec, at) => drawn[at].redraw && redraw(drawn[at], spec))) {
      detach(figures);
      fill(figures, news.figures.map((spec) => figure(spec, { zoom: true })));
      attach(figures);
    }
    const said = news.figures.flatMap((spec) => spec.alarms.map((alarm) => el("li", {}, el("strong", {}, `${say(spec.layout.title.text)}: ${say(alarm.what)}`), ` (${word("at-one-step", { step: alarm.step })}) `, say(alarm.meaning))));
    fill(alarms, said.length ? [el("h3", {}, word("alarms")), el("p", { class: "note" }, word("alarms-note")), el("ul", {}, said)] : el("p", { class: "note" }, word("no-alarms")));
  }

  function judge(found) {
    const causes = found.findings.filter((finding) => !finding.explained_by);
    const folded = found.findings.filter((finding) => finding.explained_by);
    fill(findings, el("h2", {}, word("findings")), causes.length ? causes.map((finding, at) => findingOf(book, name, finding, at + 1, folded)) : el("p", { class: found.steps ? "verdict" : "note" }, word(found.steps ? "nothing-found" : "nothing-judged")));
    attach(findings);
  }

  if (run.running || run.read < 1) follow();

  function follow() {
    let judged = Date.now();
    source.watch(name, async (news) => {
      if (!place.isConnected) { source.unwatch(name); return; }
      show(news);
      if (news.over || (run.running && Date.now() - judged > JUDGE)) {
        judged = Date.now();
        const anew = await source.run(name);
        if (place.isConnected) judge(anew);
      }
    });
  }
}

function findingOf(book, run, finding, at, folded) {
  const known = book.rules[finding.rule];
  const symptoms = folded.filter((one) => one.explained_by === finding.rule);
  const place = book.tree.flatMap((symptom) => symptom.questions.filter((question) => question.leaves.includes(finding.rule)).map((question) => [symptom.name, question.family, finding.rule]))[0];
  const rows = [["cause", finding.cause], ["fix", finding.fix], ["because", finding.because], ["confidence", finding.confidence]].filter(([, text]) => text && say(text));
  return el("article", { class: `finding ${finding.level}` }, el("h3", {}, `${at}  ${word(`level-${finding.level}`)}  ${say(finding.title)}`),
    el("p", {}, el("code", {}, finding.place ?? word("no-place")), finding.function ? ` ${word("in-function", { name: finding.function })}` : ""),
    finding.code.length ? el("pre", { tabindex: "0" }, finding.code.map(([line, text]) => el("span", { class: finding.place?.endsWith(`:${line}`) ? "guilty" : null }, `${String(line).padStart(4)}  ${text}\n`))) : null,
    el("dl", {}, rows.map(([head, text]) => [el("dt", {}, word(head)), el("dd", {}, say(text))]),
      finding.also.length ? [el("dt", {}, word("also")), el("dd", {}, finding.also.map((line) => el("code", { class: "line" }, line)))] : null,
      symptoms.length ? [el("dt", {}, word("explains")), el("dd", {}, symptoms.map((one) => el("span", { class: "line" }, say(one.title))))] : null),
    finding.evidence.length ? table(["evidence", "value", "expected", "origin", "step"].map((name) => word(name)), say(finding.evidence), word("evidence")) : null,
    finding.proof ? triedOf(finding.proof) : null,
    known ? el("p", {}, el("a", { href: link("rules", [finding.rule]) }, word("to-rule")), place ? [" · ", el("a", { href: link("tree", place, { run }) }, word("to-leaf"))] : null) : null);
}

/** What an experiment said: its outcome, and the curves before and after the change. */
function triedOf(tried) {
  return el("div", { class: "tried" }, el("p", {}, el("strong", {}, word("proof")), " ", say(tried.said)), tried.figure ? figure(tried.figure) : null);
}

function refutedOf(book, refuted) {
  if (!refuted.length) return el("section", {});
  const title = (rule) => (book.rules[rule] ? say(book.rules[rule].title) : rule);
  return el("section", {}, el("h2", {}, word("withdrawn")), refuted.map((tried) => el("article", { class: "finding note" }, el("h3", {}, title(tried.rule)), triedOf(tried))));
}

function examOf(exam) {
  if (!exam) return el("section", {});
  return el("section", {}, el("h2", {}, word("exam")), el("p", { class: "note" }, exam.date), el("div", { class: "figures" }, exam.steps.map((step) => el("div", { class: "exam-step" },
    el("h3", {}, say(step.title), " · ", el("span", { class: `state ${step.verdict === "passed" ? "ticked" : "failed"}` }, say(step.said))), el("p", {}, say(step.why)),
    step.figure ? figure(step.figure) : null, step.tried.map((tried) => el("div", {}, el("p", {}, el("code", {}, tried.rule)), triedOf(tried)))))));
}

function notesOf(source, name, lines) {
  const said = el("p", { class: "note", role: "status" });
  const areas = LINES.map((line) => el("textarea", { id: `note-${line.split(" ")[0]}`, rows: 2, maxlength: 2000 }, lines[line] ?? ""));
  const save = el("button", { type: "submit" }, word("save"));
  const form = el("form", { class: "notes", on: { submit: async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      const kept = await source.note(name, Object.fromEntries(LINES.map((line, at) => [line, areas[at].value])));
      LINES.forEach((line, at) => { areas[at].value = kept[line]; });
      said.textContent = word("saved");
    } catch (problem) {
      said.textContent = say(problem.text ?? String(problem));
    }
    save.disabled = false;
  } } }, LINES.map((line, at) => [el("label", { for: areas[at].id }, word(`note-${line.split(" ")[0]}`)), areas[at]]), el("p", { class: "buttons" }, save), said);
  if (!source.canWrite) { for (const area of areas) area.readOnly = true; save.hidden = true; }
  return el("section", {}, el("h2", {}, word("conclusion")), el("p", { class: "note" }, word("notes-lead")), form);
}

function checklistOf(source, name) {
  const body = el("div", {}, el("p", {}, word("loading")));
  let asked = false;
  return el("section", {}, el("details", { on: { toggle: async () => {
    if (asked) return;
    asked = true;
    try {
      const { tally, items } = await source.checklist(name);
      fill(body, el("p", {}, say(tally)), table(["item", "status", "evidence", "settle"].map((head) => word(head)), items.map((item) => [`${item.item} ${say(item.title)}`, el("span", { class: `state ${item.state}` }, say(item.said)), say(item.evidence), el("code", {}, item.settle)]), word("checklist")));
    } catch (problem) {
      fill(body, el("p", {}, say(problem.text ?? String(problem))));
    }
  } } }, el("summary", {}, el("h2", {}, word("checklist"))), body));
}

// -- several runs ---------------------------------------------------------------------------------------------------------

export async function comparePage(main, book, source, names) {
  const place = el("div", {}, el("p", { role: "status" }, word("loading")));
  fill(main, el("nav", { class: "beside", "aria-label": word("beside") }, el("a", { href: link("runs") }, `← ${word("all-runs")}`)), el("h1", {}, word("compare-title")), place);
  const found = await source.compare(names);
  if (!place.isConnected) return;
  fill(place, el("ul", {}, found.runs.map((name) => el("li", {}, el("a", { href: link("runs", [name]) }, name)))), found.sentences.map((text) => el("p", {}, say(text))),
    el("h2", {}, word("differences", { a: found.runs[0], b: found.runs[1] })),
    found.changes.length ? table(["section", "what", "first-run", "second-run"].map((head) => word(head)), say(found.changes), word("differences", { a: found.runs[0], b: found.runs[1] })) : el("p", {}, word("no-differences")),
    el("h2", {}, word("curves")), el("div", { class: "figures" }, found.figures.map((spec) => figure(spec, { zoom: true }))));
  attach(place);
}
