"""The reader's own runs as JSON for the page. Nothing in a record is executed, and no file is read that the page names."""
from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from traindx import messages
from traindx.core.findings import Evidence, Judged, Report
from traindx.core.text import EMPTY, Text, number, same
from traindx.errors import UsageError, reason
from traindx.figures import Chart
from traindx.figures.run import Noted, compared, readings
from traindx.reporters.exam_words import VERDICTS
from traindx.runs import exams, kept, notes, showing
from traindx.runs.comparing import mapping, rows_of
from traindx.runs.curves import Curves
from traindx.runs.reading import Run, is_number, read_json, runs_in
from traindx.studio import describing
from traindx.studio.describing import JSON, pair, plain

CHUNK = 2**23  # bytes of metrics that are read at once
PIECE_SECONDS = 1.0  # between two pictures of a file that is still being read
LONGEST = 2000  # letters of a line of the conclusion
PAGES = 20  # of one run
PLACES = (".py", ".ipynb")

NO_RUN = Text("There is no run named {name!r} in {folder}.", "{folder} 里没有名为 {name!r} 的运行记录。")
TOO_LARGE = Text("This recording is large ({size} MB): what is said here is what the report said when the run ended.",
                 "这份记录很大（{size} MB）：这里显示的是运行结束时报告里的结论。")
BROKEN_LINES = Text("{count} line{count:|s} of the record could not be read; what is shown rests on the others.",
                    "记录里有 {count} 行读不出来，这里只依据其余部分。")
CANNOT_WRITE = Text("notes.md could not be written: {problem}", "notes.md 写不进去：{problem}")
COMPARE_TWO = Text("Choose two runs or more to compare.", "请选择两次或更多的运行来比较。")


def run_named(runs_dir: Path, name: str) -> Run:
    """One of the runs that are there; the name is compared, never joined to a path. Raises UsageError."""
    for path in runs_in(runs_dir):
        if path.name == name:
            return Run(path)
    raise UsageError(NO_RUN.fill(name=name, folder=runs_dir))


def listing(runs_dir: Path) -> JSON:
    """Newest first."""
    from traindx.runs.index import rows
    found = sorted(rows(runs_dir), key=lambda row: (row["started"], row["run"]), reverse=True)
    shown = [{**row, "state": showing.state(row["status"]), "best": _best(row["best"])} for row in found]
    return plain({"folder": str(runs_dir), "runs": shown})


def _best(best: Any) -> str:
    value = mapping(best).get("value")
    return f"{mapping(best).get('metric')} {number(float(value))}" if is_number(value) else ""


# -- curves ---------------------------------------------------------------------------------------------------------------

def figures(series: Mapping[str, Sequence[tuple[int, float]]], noted: Sequence[Noted] = ()) -> JSON:
    """The six monitors and every other series, with bands, alarms and findings."""
    return [{**describing.figure(one.chart), "series": one.name, "alarms": [plain(vars(alarm)) for alarm in one.alarms]}
            for one in readings(series, noted)]


# -- one run --------------------------------------------------------------------------------------------------------------

def page(runs_dir: Path, name: str) -> JSON:
    """Everything about one run except for the curves of a large one, which come as they are read."""
    run = run_named(runs_dir, name)
    curves = kept.opened(run.path)
    curves.read(CHUNK)
    large = run.is_large
    report = Report() if large else _judged(run)
    written = read_json(run.path / "report.json")
    exam = exams.exam_of(run, runs_dir)
    proved = exams.proved(written, exam)
    found = _from_report(written) if large else [_finding(judged, report, run) for judged in report.findings]
    for finding in found:
        finding["proof"] = _tried(proved[finding["rule"]]) if finding["rule"] in proved else None
    remarks = [*run.remarks(), *([TOO_LARGE.fill(size=run.size >> 20)] if large else report.remarks)]
    if large and curves.lost:
        remarks.append(BROKEN_LINES.fill(count=curves.lost))
    state = _status(run, curves)
    said = plain({"run": run.name, "state": showing.state(state), "running": state == "running", "remarks": remarks, "notes": run.notes,
                  "facts": showing.facts(run, {}), "config": showing.config(run), "pages": pages_of(run)})
    return {**said, "findings": found, "refuted": [_tried(one) for one in exams.withdrawn(written, exam)],
            "exam": _exam(exam, {finding["rule"] for finding in found}), "figures": figures(curves.series, _noted(found)),
            "read": curves.share, "steps": curves.steps}


def _status(run: Run, curves: Curves) -> str:
    """As run.status, which would read the whole recording of a killed run."""
    from traindx.runs.status import RUNNING, is_running
    said = run.fields.get("status")
    if not isinstance(said, str):
        return "unknown"
    if said != RUNNING or is_running(run.path, run.fields):
        return said
    return f"killed at step {curves.steps}"


def _judged(run: Run) -> Report:
    """Findings that an experiment has refuted were withdrawn by the report, and stay so."""
    from traindx.diagnosis import diagnose, no_training
    report = diagnose(run.recording)
    refuted = {row.get("rule") for row in rows_of(read_json(run.path / "report.json").get("refuted"))}
    report.findings = [judged for judged in report.findings if judged.rule not in refuted]
    if (why := no_training(run.recording)) is not None:
        report.remarks.insert(0, messages.NO_TRAINING.fill(why=why))
    return report


def _finding(judged: Judged, report: Report, run: Run) -> JSON:
    finding = judged.finding
    where = finding.where
    said = {"rule": judged.rule, "level": judged.level, "title": judged.title, "cause": finding.cause, "fix": finding.fix,
            "place": f"{where.file}:{where.line}" if where else None, "function": where.function if where else None,
            "code": _code(judged, run),
            "also": [f"{site.file}:{site.line}  {site.code}" for site in finding.also], "step": finding.first_step,
            "confidence": messages.CONFIDENCE[finding.confidence], "because": finding.because, "explained_by": judged.explained_by,
            "evidence": [list(_evidence(one)) for one in finding.evidence]}
    return plain(said)


def _evidence(one: Evidence) -> Iterator[Text]:
    from traindx.reporters.words import value_of
    yield one.what
    yield value_of(one.value, one.unit)
    yield one.expected if isinstance(one.expected, Text) else same(str(one.expected))
    yield messages.ORIGIN[one.origin]
    yield EMPTY if one.step is None else same(str(one.step))


def _code(judged: Judged, run: Run) -> list[list[Any]]:
    """Numbered lines around the place, where the program's file still stands as it was; else the line that was recorded."""
    from traindx.reporters.html import context
    where = judged.finding.where
    if where is None:
        return []
    if not where.file.endswith(PLACES):
        return [[where.line, where.code]]
    return [list(row) for row in context(where, Path(str(run.fields.get("cwd", ""))))]


def _tried(tried: exams.Tried) -> JSON:
    """Rule, outcome and reason, and the curves before and after the change."""
    return {"rule": tried.rule, "said": pair(exams.said_of(tried)), "figure": _figure(tried.chart)}


def _figure(chart: Chart | None) -> JSON:
    return describing.figure(chart) if chart is not None else None


def _exam(exam: exams.Exam | None, above: Container[str]) -> JSON:
    """Its steps; experiments on the findings that stand ``above`` are told there."""
    if exam is None or not exam.steps:
        return None
    return {"date": exam.date, "steps": [
        {"title": pair(step.title), "verdict": step.verdict, "said": pair(VERDICTS[step.verdict]), "why": pair(step.why),
         "figure": _figure(step.chart), "tried": [_tried(one) for one in step.tried if one.rule not in above]} for step in exam.steps]}


def _from_report(written: Mapping[str, Any]) -> list[JSON]:
    """Findings as the report has them, in the language that it was written in."""
    from traindx.core.rules import all_rules
    found = []
    for row in rows_of(written.get("findings")):
        where, rule = mapping(row.get("where")), str(row.get("rule"))
        title = all_rules()[rule].title if rule in all_rules() else same(str(row.get("title", "")))
        confidence = messages.CONFIDENCE.get(str(row.get("confidence")), EMPTY)
        found.append(plain({
            "rule": rule, "level": str(row.get("level")), "title": title, "cause": str(row.get("cause", "")), "fix": str(row.get("fix", "")),
            "place": f"{where.get('file')}:{where.get('line')}" if where else None, "function": None, "also": [], "because": "",
            "code": [[where.get("line"), str(where.get("code", ""))]] if where else [], "evidence": [],
            "step": row["first_step"] if is_number(row.get("first_step")) else 1,
            "confidence": confidence, "explained_by": row.get("explained_by")}))
    return found


def _noted(found: Sequence[Mapping[str, Any]]) -> list[Noted]:
    """In the order of the page: a symptom stands below its cause and has no number."""
    causes = [finding for finding in found if not finding["explained_by"]]
    return [Noted(at, int(finding["step"]), str(finding["rule"]), str(finding["level"])) for at, finding in enumerate(causes, 1)]


class Live:
    """A run that is read a piece at a time, and goes on being read while it is written."""

    def __init__(self, runs_dir: Path, name: str) -> None:
        self.run = run_named(runs_dir, name)
        self.curves = kept.opened(self.run.path)
        self.over = self.up_to_date = self._kept = False
        self._said = ""

    def news(self) -> JSON | None:
        """What there is to say since the last time, None for nothing."""
        changed = self._read()
        status = _status(Run(self.run.path), self.curves)
        self.up_to_date = self.curves.share >= 1 or not changed
        self.over = status != "running" and self.up_to_date
        if self.over or (self.up_to_date and not self._kept):
            self._kept = True
            kept.keep(self.curves)
        if not changed and status == self._said:
            return None
        self._said = status
        return {"figures": figures(self.curves.series), "read": self.curves.share, "steps": self.curves.steps,
                "state": pair(showing.state(status)), "over": self.over}

    def _read(self) -> bool:
        """A second's worth of a large file, all of a small one; whether there was anything new."""
        until, changed = monotonic() + PIECE_SECONDS, False
        while self.curves.read(CHUNK):
            changed = True
            if monotonic() > until:
                break
        return changed


# -- what else there is of a run ------------------------------------------------------------------------------------------

def pages_of(run: Run) -> list[str]:
    """HTML pages in the run's folder, and those that traindx made of its script beside it, by name."""
    return list(_pages(run))[:PAGES]


def _pages(run: Run) -> dict[str, Path]:
    script = Path(str(run.fields.get("script", "")))
    folder = Path(str(run.fields.get("cwd", "")))
    found = {path.name: path for path in sorted(run.path.glob("*.html")) if path.is_file()}
    if folder.is_absolute() and script.stem:
        made = {path.name: path for path in (folder / f"traindx-{kind}-{script.stem}.html" for kind in ("data", "memory", "speed"))}
        found |= {name: path for name, path in made.items() if path.is_file()}
    return found


def page_of(runs_dir: Path, name: str, page: str) -> str | None:
    """A page by the name under which the run lists it."""
    try:
        path = _pages(run_named(runs_dir, name)).get(page)
        return path.read_text(encoding="utf-8", errors="replace") if path else None
    except (UsageError, OSError):
        return None


def checklist(runs_dir: Path, name: str) -> JSON:
    from traindx.checklist import judging
    from traindx.checklist import words as said
    from traindx.checklist.evidence import gather
    run = run_named(runs_dir, name)
    items = judging.judge(gather(run, runs_dir))
    return plain({"tally": judging.tally(items), "items": [
        {"item": item.item, "group": said.GROUPS.get(item.item), "title": item.title, "state": item.state, "said": said.STATES[item.state],
         "evidence": item.evidence, "settle": item.settle} for item in items]})


def note(runs_dir: Path, name: str, lines: Mapping[str, Any]) -> JSON:
    """Writes the three lines into notes.md, the one thing that the studio writes; gives them back as they now stand."""
    run = run_named(runs_dir, name)
    given = {line: str(lines[line])[:LONGEST] for line in notes.LINES if line in lines}
    try:
        notes.write(run.path, given)
    except OSError as problem:
        raise UsageError(CANNOT_WRITE.fill(problem=reason(problem))) from None
    return notes.read(run.path)


# -- several runs ---------------------------------------------------------------------------------------------------------

def comparison(runs_dir: Path, names: Sequence[str]) -> JSON:
    """Curves over each other, what the seeds' spread allows to say, and what differs between the first two."""
    from traindx.runs.comparing import diff, groups
    runs = [run_named(runs_dir, name) for name in dict.fromkeys(names)]
    if len(runs) < 2:
        raise UsageError(COMPARE_TWO)
    pictures = [describing.figure(chart) for chart in compared({run.name: run.measured.series for run in runs})]
    changes = diff(runs[0], runs[1])
    rows = [[pair(showing.TITLES[section]), name, *map(showing.value_text, both)] for section in showing.TITLES if section != "curves"
            for name, both in changes[section].items()]
    said = [pair(text) for text in showing.sentences(runs, *groups(runs))]
    return {"runs": [run.name for run in runs], "figures": pictures, "sentences": said, "changes": rows}
