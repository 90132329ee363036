"""``traindx runs``: what ran, with which code, settings, seeds and data; what came of it."""
from __future__ import annotations

import argparse
import fnmatch
import json
import math
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError, reason
from traindx.runs import words

if TYPE_CHECKING:
    from traindx.runs.reading import Run

ABOUT = words.ABOUT
DETAILS = words.DETAILS
SORTS = ("started", "name", "steps", "best", "status")


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=type(parser))

    def action(name: str, text: Text, run: Callable[[argparse.Namespace], int]) -> Callable[..., None]:
        sub = actions.add_parser(name, language=language, help=text.say(language), description=text.say(language))
        sub.set_defaults(action=run)
        _common(sub, language)

        def add(*names: str, text: Text, **settings: Any) -> None:
            sub.add_argument(*names, help=text.say(language), **settings)
        return add
    add = action("list", words.LIST, _list)
    add("--json", action="store_true", text=words.OPT_JSON)
    add("--status", choices=("running", "finished", "failed", "killed"), text=words.OPT_STATUS)
    add("--name", metavar="PATTERN", text=words.OPT_NAME)
    add("--unfinished", action="store_true", text=words.OPT_OPEN)
    add("--sort", choices=SORTS, default="started", text=words.OPT_SORT)
    add("--limit", metavar="N", type=int, text=words.OPT_LIMIT)
    add = action("show", words.SHOW, _show)
    add("--json", action="store_true", text=words.OPT_JSON)
    add("--html", metavar="FILE", text=words.OPT_PAGE)
    add("run", metavar="RUN", nargs="?", default="last", text=words.OPT_RUN)
    add = action("diff", words.DIFF, _diff)
    add("--json", action="store_true", text=words.OPT_JSON)
    add("a", metavar="A", text=words.OPT_RUN)
    add("b", metavar="B", text=words.OPT_RUN)
    add = action("compare", words.COMPARE, _compare)
    add("--html", metavar="FILE", text=words.OPT_HTML)
    add("--json", action="store_true", text=words.OPT_JSON)
    add("runs", metavar="RUN", nargs="+", text=words.OPT_RUN)
    add = action("note", words.NOTE, _note)
    add("--best", metavar="TEXT", text=words.OPT_BEST)
    add("--failed", metavar="TEXT", text=words.OPT_FAILED)
    add("--next", metavar="TEXT", text=words.OPT_NEXT)
    add("run", metavar="RUN", nargs="?", default="last", text=words.OPT_RUN)
    add = action("export", words.EXPORT, _export)
    add("--csv", metavar="FILE", text=words.OPT_CSV)
    add("--tensorboard", metavar="FOLDER", text=words.OPT_TENSORBOARD)
    add("--parquet", metavar="FILE", text=words.OPT_PARQUET)
    add("run", metavar="RUN", nargs="?", default="last", text=words.OPT_RUN)
    add = action("rm", words.RM, _rm)
    add("--yes", action="store_true", text=words.OPT_YES)
    add("runs", metavar="RUN", nargs="+", text=words.OPT_RUN)
    add = action("gc", words.GC, _gc)
    add("--yes", action="store_true", text=words.OPT_YES)
    add("--older", metavar="DAYS", type=float, text=words.OPT_OLDER)
    add = action("reproduce", words.REPRODUCE, _reproduce)
    add("--keep", action="store_true", text=words.OPT_KEEP)
    add("--json", action="store_true", text=words.OPT_JSON)
    add("run", metavar="RUN", nargs="?", default="last", text=words.OPT_RUN)


def _common(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    parser.add_argument("--runs-dir", metavar="DIR", help=words.OPT_DIR.say(language))
    add_language_option(parser, language)


def run(options: argparse.Namespace) -> int:
    from traindx.config import settings_from
    from traindx.reporters.progress import reading
    settings = settings_from({"runs_dir": options.runs_dir, "lang": options.lang}, Path.cwd())
    options.folder, options.language = Path(settings.runs_dir), language_from(settings.lang)
    options.progress = reading(options.language)
    status: int = options.action(options)
    return status


def _list(options: argparse.Namespace) -> int:
    from traindx.reporters.style import columns_of, style_for
    from traindx.runs.index import rows
    from traindx.runs.showing import listing
    found = [row for row in rows(options.folder, options.progress) if _fits(row, options)]
    found.sort(key=_sort_key(options.sort), reverse=options.sort in ("started", "steps"))
    found = found[:options.limit]
    if options.json:
        _print_json(found)
    elif found:
        print("\n".join(listing(found, options.language, style_for(sys.stdout), columns_of(sys.stdout))))
    else:
        print(words.NO_RUNS.fill(folder=options.folder).say(options.language))
    return 0


def _fits(row: dict[str, Any], options: argparse.Namespace) -> bool:
    named = options.name is None or fnmatch.fnmatch(row["name"], options.name) or fnmatch.fnmatch(row["run"], options.name)
    return named and (options.status is None or row["status"].startswith(options.status)) and not (options.unfinished and row["concluded"])


def _sort_key(name: str) -> Callable[[dict[str, Any]], Any]:
    """Runs without the value come last."""
    from traindx.runs.reading import is_number
    def best(row: dict[str, Any]) -> tuple[bool, float]:
        value = row["best"].get("value")
        return not is_number(value), value if is_number(value) else 0.0
    keys: dict[str, Callable[[dict[str, Any]], Any]] = {"best": best, "started": lambda row: (row["started"], row["run"])}
    return keys.get(name, lambda row: (row[name], row["run"]))


def _show(options: argparse.Namespace) -> int:
    from traindx.reporters.style import columns_of, style_for
    from traindx.runs.reading import find, read_json
    from traindx.runs.showing import page
    found = find(options.folder, options.run, options.progress)
    report = read_json(found.path / "report.json")
    if options.json:
        _print_json({**found.fields, "run": found.name, "status": found.status, "steps": found.steps, "best": found.best, "curves": found.curves,
                     "record": found.record, "environment": found.environment, "notes": found.notes, "findings": report.get("findings", [])})
    else:
        print("\n".join(page(found, report, options.language, style_for(sys.stdout), columns_of(sys.stdout))))
    if options.html:
        from traindx.runs.page import render
        _write(options.html, render(found, report, options.language, options.folder))
    return 0


def _diff(options: argparse.Namespace) -> int:
    from traindx.reporters.layout import wrap
    from traindx.reporters.style import columns_of, style_for
    from traindx.runs.comparing import diff, gain
    from traindx.runs.reading import find, siblings
    from traindx.runs.showing import differences, gain_text
    a, b = find(options.folder, options.a, options.progress), find(options.folder, options.b, options.progress)
    found = diff(a, b) | {"gain": gain(a, b, siblings(a, options.folder))}
    if options.json:
        _print_json(found)
    else:
        print("\n".join(differences(found, options.language, style_for(sys.stdout), columns_of(sys.stdout))).lstrip("\n"))
        if found["gain"]:
            told = gain_text(b.name, a.name, found["gain"]["difference"], found["gain"]["interval"], min(found["gain"]["seeds"]))
            metric = words.METRIC.fill(metric=found["gain"]["metric"]).say(options.language)
            between = "" if options.language == "zh" else " "
            print("\n".join(wrap(metric + between + told.say(options.language), columns_of(sys.stdout))))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from traindx.reporters.layout import wrap
    from traindx.reporters.style import columns_of
    from traindx.runs.comparing import difference, groups
    from traindx.runs.overlay import render
    from traindx.runs.reading import find
    from traindx.runs.showing import sentences
    runs = [find(options.folder, name, options.progress) for name in options.runs]
    if len(runs) < 2:
        raise UsageError(words.TWO_NEEDED)
    metric, made = groups(runs)
    said = [text.say(options.language) for text in sentences(runs, metric, made)]
    if options.json:
        gains = [(a, b, *difference(a, b)) for a, b in zip(made[1:], [made[0]] * len(made))] if made else []
        shown = [{"name": group.name, "runs": list(group.runs), "values": list(group.values), "mean": group.mean, "spread": group.spread}
                 for group in made]
        _print_json({"metric": metric, "groups": shown,
                     "gains": [{"a": a.name, "b": b.name, "difference": gap, "interval": interval} for a, b, gap, interval in gains]})
    else:
        print("\n".join(line for text in said for line in wrap(text, columns_of(sys.stdout), "", "  ")))
    if options.html:
        _write(options.html, render(runs, said, options.language))
    return 0


def _note(options: argparse.Namespace) -> int:
    from traindx.runs import notes
    from traindx.runs.reading import find
    found = find(options.folder, options.run, options.progress)
    given = {name: text for name, text in zip(notes.LINES, (options.best, options.failed, options.next)) if text is not None}
    if not given and notes.can_ask():
        given = notes.ask(options.language)
    if given:
        try:
            notes.write(found.path, given)
        except OSError as problem:
            raise UsageError(words.CANNOT_WRITE.fill(file=found.path / notes.FILE, problem=reason(problem))) from None
    from traindx.reporters.layout import printable
    colon = messages.COLON.say(options.language)
    for name, text in notes.read(found.path).items():
        print(f"{words.LINES[name].say(options.language)}{colon}{printable(text)}".rstrip())
    return 0


def _export(options: argparse.Namespace) -> int:
    from traindx.runs import exporting
    from traindx.runs.reading import find
    found = find(options.folder, options.run, options.progress)
    if not (options.csv or options.tensorboard or options.parquet):
        raise UsageError(words.NOTHING_TO_EXPORT)
    series = found.recording.series
    if not series:
        raise UsageError(words.NO_CURVES.fill(run=found.name))
    try:
        if options.csv:
            with open(options.csv, "w", newline="", encoding="utf-8") as file:
                exporting.to_csv(series, file)
        if options.tensorboard:
            exporting.to_tensorboard(series, Path(options.tensorboard), _began(found))
        if options.parquet:
            exporting.to_parquet(series, Path(options.parquet))
    except OSError as problem:
        raise UsageError(words.CANNOT_WRITE.fill(file=problem.filename, problem=reason(problem))) from None
    for target in filter(None, (options.csv, options.tensorboard, options.parquet)):
        print(words.WROTE.fill(file=target).say(options.language))
    return 0


def _began(found: Run) -> float:
    try:
        return datetime.fromisoformat(str(found.fields.get("started"))).timestamp()
    except ValueError:
        return 0.0


def _rm(options: argparse.Namespace) -> int:
    from traindx.runs.reading import find
    from traindx.runs.removing import check
    found = list({run.path.resolve(): run for run in (find(options.folder, name, options.progress) for name in options.runs)}.values())
    for one in found:
        check(one)
    return _remove(found, options)


def _gc(options: argparse.Namespace) -> int:
    from traindx.runs.removing import leftovers
    found = leftovers(options.folder, options.older)
    for one in found:
        print(f"  {one.name}")
    return _remove(found, options)


def _remove(found: list[Run], options: argparse.Namespace) -> int:
    from traindx.core.amounts import binary_size
    from traindx.runs.notes import can_ask
    from traindx.runs.removing import remove, size_of
    language = options.language
    size = binary_size(sum(size_of(run.path) for run in found))
    if not found:
        print(words.NOTHING_REMOVED.say(language))
        return 0
    if not options.yes:
        if not can_ask():
            raise UsageError(words.NOT_ASKED)
        print(f"{words.REMOVE.fill(count=len(found), size=size).say(language)} [y/N] ", end="", file=sys.stderr, flush=True)
        if input().strip().lower() not in ("y", "yes"):
            print(words.NOTHING_REMOVED.say(language))
            return 0
    try:
        remove(found)
    except OSError as problem:
        raise UsageError(words.CANNOT_WRITE.fill(file=problem.filename, problem=reason(problem))) from None
    print(words.REMOVED.fill(count=len(found), size=size).say(language))
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from traindx.runs.reading import find
    from traindx.runs.repeating import repeat
    return repeat(find(options.folder, options.run, options.progress), options.folder, options.language, keep=options.keep, as_json=options.json)


def _print_json(value: Any) -> None:
    """JSON has no NaN and no infinities: they are null."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        raise UsageError(words.CANNOT_WRITE.fill(file=file, problem=reason(problem))) from None
