"""Runs on a terminal: the list, one run, what changed. Every text from a record is stripped of control characters."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from traindx import messages
from traindx.core import amounts
from traindx.core.text import Language, Text, joined, number, same
from traindx.reporters.layout import cut, pad, printable, width, wrap
from traindx.reporters.style import Style
from traindx.runs import comparing, words
from traindx.runs.comparing import mapping, rows_of
from traindx.runs.reading import Run, as_count, is_number

LONGEST_VALUE = 60
SERIES = ("loss", "val_loss", "lr", "grad_norm", "activation_std", "update_ratio", "weight_norm", "samples_per_second", "peak_memory_bytes")


def state(status: str) -> Text:
    """The status in both languages."""
    if status.startswith("killed at step "):
        return words.KILLED.fill(step=printable(status.removeprefix("killed at step ")))
    return words.STATES.get(status, same(printable(status)))


def listing(rows: list[dict[str, Any]], language: Language, style: Style, columns: int) -> Iterator[str]:
    heads = [words.HEADS[name].say(language) for name in ("run", "status", "steps", "best", "findings", "commit", "concluded")]
    cells = [_cells(row, language) for row in rows]
    head, *lines = _table([heads, *cells], columns)
    yield from map(style.strong, head)
    for row in lines:
        yield from row
    yield ""
    yield words.COUNT.fill(count=len(rows), open=sum(not row["concluded"] for row in rows)).say(language)


def _table(rows: list[list[str]], columns: int) -> Iterator[list[str]]:
    """A line each; two where that is too wide for the terminal: first what the row is about."""
    widths = [max(width(row[at]) for row in rows) + 2 for at in range(len(rows[0]))]
    fits = sum(widths) - 2 <= columns
    for name, *cells in rows:
        line = "".join(pad(cell, room) for cell, room in zip(cells, widths[1:])).rstrip()
        yield [pad(name, widths[0]) + line] if fits else [name, "  " + cut(line, columns - 2)]


def _cells(row: dict[str, Any], language: Language) -> list[str]:
    best = row["best"]
    value = best.get("value") if isinstance(best, dict) else None
    shown = f"{best.get('metric')} {number(float(value))}" if is_number(value) else "-"
    commit = str(row["commit"] or "-")[:8] + ("+" if row["dirty"] and row["commit"] else "")
    found = "-" if row["findings"] is None else str(row["findings"])
    concluded = (words.CONCLUDED if row["concluded"] else words.UNCONCLUDED).say(language)
    return [printable(cell) for cell in (row["run"], state(row["status"]).say(language), str(row["steps"]), shown, found, commit, concluded)]


# -- one run ------------------------------------------------------------------------------------------------------------------------

def page(run: Run, report: dict[str, Any], language: Language, style: Style, columns: int) -> Iterator[str]:
    head = f"── {messages.NAME} ── "
    line = cut(head + run.name, columns - 1) + " "
    yield style.strong(line + "─" * (columns - width(line)))
    for remark in run.remarks():
        yield from wrap(remark.say(language), columns)
    rows = facts(run, report)
    margin = max(width(heading.say(language)) for heading, _ in rows) + 2
    before = None
    for heading, text in rows:
        lead = pad(heading.say(language) if heading is not before else "", margin)
        before = heading
        yield from wrap(printable(text.say(language)), columns, lead, " " * margin)
    yield from _section(words.CURVES, named(_curves(run)), language, style, columns)
    yield from _section(words.CONFIG, named(config(run)), language, style, columns)
    yield from _section(words.CONCLUSION, conclusion(run), language, style, columns)


def facts(run: Run, report: dict[str, Any]) -> list[tuple[Text, Text]]:
    """Name and value: what ran, on which code, seeds and data, and what was found."""
    return [*_identity(run), *_code(run), *_seeds(run), *dict.fromkeys(_data(run)), *_findings(report)]


def named(rows: Iterable[tuple[str, Text]]) -> list[tuple[Text, Text]]:
    return [(same(name), text) for name, text in rows]


def _section(title: Text, rows: list[tuple[Text, Text]], language: Language, style: Style, columns: int) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield style.strong(title.say(language))
    names = [printable(name.say(language)) for name, _ in rows]
    margin = min(30, max(map(width, names)) + 4)
    for name, (_, text) in zip(names, rows):
        lead = pad(f"  {name}", margin)
        yield from wrap(printable(text.say(language)), columns, lead if width(lead) == margin else lead + "  ", " " * margin)


def _identity(run: Run) -> Iterator[tuple[Text, Text]]:
    fields = run.fields
    argv = fields.get("argv")
    shown = " ".join([str(fields.get("script", "?")), *map(str, argv if isinstance(argv, list) else [])])
    yield words.SCRIPT, same(cut(shown, 400))
    yield words.STARTED, same(str(fields.get("started", "?")))
    steps = messages.STEPS.fill(count=run.steps)
    yield words.STATUS, state(run.status) + messages.LIST_COMMA + steps


def _code(run: Run) -> Iterator[tuple[Text, Text]]:
    code = mapping(run.record.get("code"))
    commit = code.get("commit")
    if not commit:
        why = str(code.get("why") or "?")
        yield words.CODE, words.NO_COMMIT.fill(why=words.WHY.get(why, same(why)))
    else:
        branch = f" ({code['branch']})" if code.get("branch") else ""
        text = same(f"{str(commit)[:12]}{branch}")
        if code.get("diff_sha256"):
            size = amounts.binary_size(as_count(code.get("diff_bytes")))
            text += messages.LIST_COMMA + words.WITH_DIFF.fill(size=size, sha=str(code["diff_sha256"])[:12])
        if code.get("kept") in ("sources", "none") and code.get("dirty"):
            text += words.NOT_KEPT
        yield words.CODE, text
    files = mapping(code.get("files"))
    if files:
        yield words.CODE, words.FILES_KEPT.fill(count=len(files))


def _seeds(run: Run) -> Iterator[tuple[Text, Text]]:
    seeds = mapping(run.record.get("seeds"))
    for call in rows_of(seeds.get("calls")):
        seed = call.get("seed")
        said = same(f"{call.get('function')}({'' if seed is None else seed}) {call.get('where')}")
        yield words.SEEDS, said
    unseeded = seeds.get("unseeded")
    if isinstance(unseeded, list) and unseeded:
        yield words.UNSEEDED, same(", ".join(map(str, unseeded)))


def _data(run: Run) -> Iterator[tuple[Text, Text]]:
    data = mapping(run.record.get("data"))
    for loader in rows_of(data.get("loaders")):
        split = mapping(loader.get("split"))
        said = words.DATASET.fill(dataset=loader.get("dataset"), size=loader.get("size"))
        if split:
            said += words.SUBSET.fill(size=split.get("size"))
        content = words.CONTENT.get(str(loader.get("coverage")))
        if loader.get("content") and content is not None:
            said += content.fill(digest=str(loader["content"])[:12])
        yield words.DATA, said


def _findings(report: dict[str, Any]) -> Iterator[tuple[Text, Text]]:
    for finding in rows_of(report.get("findings")):
        if finding.get("explained_by"):
            continue
        where = mapping(finding.get("where"))
        place = f" ({where.get('file')}:{where.get('line')})" if where else ""
        level = str(finding.get("level"))
        yield words.FINDINGS, messages.LEVEL.get(level, same(level)) + same(f" {finding.get('rule')}{place}")


def _curves(run: Run) -> list[tuple[str, Text]]:
    names = [name for name in SERIES if name in run.curves] + sorted(set(run.curves) - set(SERIES))
    rows = []
    for name in names:
        curve = mapping(run.curves[name])
        last, low = curve.get("last"), curve.get("min")
        if is_number(last) and is_number(low):
            rows.append((name, words.SERIES_LINE.fill(last=amounts.reading(name, last), low=amounts.reading(name, low), step=curve.get("at_min"),
                                                      points=curve.get("points"))))
    return rows


def config(run: Run) -> list[tuple[str, Text]]:
    config = mapping(run.record.get("config"))
    rows = []
    for part in rows_of(config.get("program")):
        rows += [(name, same(value_text(value))) for name, value in comparing.flat(part.get("values"), "").items()]
    for kind in ("optimizers", "schedulers", "loaders"):
        for part in rows_of(config.get(kind)):
            rows.append((str(part.get("class") or kind.removesuffix("s")), same(_settings(part))))
    return list(dict.fromkeys(rows))[:60]  # a loader that is made anew in each epoch is told once


def _settings(part: dict[str, Any]) -> str:
    """The settings of an optimizer's first group, a scheduler or a loader, those that say something."""
    group = rows_of(part.get("groups"))
    settings = group[0] if group else mapping(part.get("settings")) or {k: v for k, v in part.items() if k not in ("where", "class")}
    return ", ".join(f"{name}={value_text(value)}" for name, value in settings.items() if value not in (None, False))


def conclusion(run: Run) -> list[tuple[Text, Text]]:
    lines = run.notes
    if not any(lines.values()):
        return [(same("-"), words.NONE_WRITTEN.fill(run=run.name))]
    return [(head, same(lines[name] or "-")) for name, head in words.LINES.items()]


# -- what changed ---------------------------------------------------------------------------------------------------------------------

TITLES = {"code": words.CODE, "config": words.CONFIG, "seeds": words.SEEDS, "data": words.DATA, "environment": words.ENVIRONMENT,
          "curves": words.CURVES}


def differences(found: dict[str, Any], language: Language, style: Style, columns: int) -> Iterator[str]:
    """Only what differs; then how many variables that is."""
    for section in comparing.SECTIONS:
        rows = [(name, same(_arrow([a, b]))) for name, (a, b) in found[section].items()]
        yield from _section(TITLES[section], named(rows), language, style, columns)
    curves = found["curves"]
    rows = [(name, words.CURVE_CHANGED.fill(last=_arrow(curve["last"], name), low=_arrow(curve["min"], name)))
            for name, curve in curves.items() if name not in ("first_difference", "not_compared")]
    yield from _section(words.CURVES, named(rows), language, style, columns)
    yield ""
    first = curves.get("first_difference")
    alike = words.CURVES_NOT_COMPARED if "not_compared" in curves else words.CURVES_SAME_SO_FAR if rows else words.CURVES_SAME
    yield from wrap(words.FIRST_DIFFERENT.fill(**{**first, "a": number(first["a"], 6), "b": number(first["b"], 6)}).say(language)
                    if first else alike.say(language), columns)
    yield from wrap(verdict(comparing.variables(found)).say(language), columns)


def _arrow(pair: list[Any], series: str = "") -> str:
    """Two values; of machine-made series in the unit that people read, else with as many digits as tell them apart."""
    shown = (amounts.reading(series, value) if series in comparing.TIMED and is_number(value) else value_text(value) for value in pair)
    return " -> ".join(shown)


def verdict(variables: list[str]) -> Text:
    """One variable or several: the first question about any comparison."""
    if not variables:
        return words.NO_CHANGE_BUT
    if variables == ["seed"]:
        return words.ONLY_SEED
    if len(variables) == 1:
        return words.ONE_CHANGED.fill(name=_variable(variables[0]))
    shown = joined([_variable(name) for name in variables[:6]]) + same(" ..." if len(variables) > 6 else "")
    return words.SEVERAL_CHANGED.fill(count=len(variables), names=shown)


def _variable(name: str) -> Text:
    """``code``, ``seed``, ``data (train content)`` in words; the name of a setting as it is."""
    kind, bracket, rest = name.partition(" (")
    return words.VARIABLES.get(kind, same(printable(kind))) + same(printable(bracket + rest))


def gain_text(a: str, b: str, gap: float, interval: Sequence[float] | None, fewest: int) -> Text:
    """A gain against its interval; ``fewest``: runs of the smaller group."""
    if interval is None:
        return words.NO_SPREAD.fill(a=a, b=b, difference=number(gap))
    inside = words.INSIDE if interval[0] <= 0 <= interval[1] else words.OUTSIDE
    told = words.GAIN if fewest > 1 else words.GAIN_OF_ONE
    return told.fill(a=a, b=b, difference=number(gap), low=number(interval[0]), high=number(interval[1]), verdict=inside)


def value_text(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 6)
    text = "-" if value is None else str(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


# -- a gain against the spread ------------------------------------------------------------------------------------------------------------

def sentences(runs: Sequence[Run], metric: str, made: Sequence[comparing.Group]) -> Iterator[Text]:
    """The metric, one line a group, then every later group against the first, with what was changed between them."""
    by_name = {run.name: run for run in runs}
    yield words.METRIC.fill(metric=metric)
    for group in made:
        spread = "-" if group.spread is None else number(group.spread)
        parts = ((words.SEED_COUNT, len(group.values)), (words.MEAN, number(group.mean, 5)), (words.SPREAD, spread))
        said = [text + same(f" {value}") for text, value in parts]
        yield same(f"  {group.name}") + messages.COLON + joined(said, messages.LIST_COMMA)
    for group in made[1:]:
        gap, interval = comparing.difference(group, made[0])
        text = gain_text(group.name, made[0].name, gap, interval, min(len(group.values), len(made[0].values)))
        changed = verdict(comparing.variables(comparing.diff(by_name[made[0].name], by_name[group.name])))
        yield text + Text(" ", "") + changed
