"""``traindx run``: a script under observation, then the report on it."""
from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.config import FAIL_ON, Settings, settings_from
from traindx.core.text import EMPTY, Language, Text, language_from
from traindx.errors import UsageError, reason

if TYPE_CHECKING:
    from traindx.core.findings import Report
    from traindx.core.recording import Recording
    from traindx.launch import Outcome
    from traindx.live import Live
    from traindx.mirrors import Following
    from traindx.ranks import Place
    from traindx.runs.folder import RunFolder

ABOUT = messages.RUN_ABOUT
DETAILS = messages.RUN_DETAILS
FAIL_ON_MET = 3
REPORT_FILES = ("json", "html", "sarif")
LAUNCHERS = ("torch", "accelerate", "lightning", "deepspeed", "pytest", "unittest", "runpy")  # they run others' code


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option

    def add(*names: str, text: Text, **options: Any) -> None:
        parser.add_argument(*names, help=text.say(language), **options)
    parser.usage = "traindx run [OPTIONS] SCRIPT [ARGS...]\n       traindx run [OPTIONS] -m MODULE [ARGS...]"
    add("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, text=messages.OPT_MODULE)
    add("--json", metavar="FILE", text=messages.OPT_JSON)
    add("--html", metavar="FILE", text=messages.OPT_HTML)
    add("--sarif", metavar="FILE", text=messages.OPT_SARIF)
    add_language_option(parser, language)
    add("--select", metavar="RULES", action="append", text=messages.OPT_SELECT)
    add("--ignore", metavar="RULES", action="append", text=messages.OPT_IGNORE)
    add("--fail-on", choices=FAIL_ON, text=messages.OPT_FAIL_ON)
    add("--max-steps", metavar="N", text=messages.OPT_MAX_STEPS)
    add("--prove", action="store_true", default=None, text=messages.OPT_PROVE)
    add("--name", text=messages.OPT_NAME)
    add("--runs-dir", metavar="DIR", text=messages.OPT_RUNS_DIR)
    add("--no-record", action="store_true", default=None, text=messages.OPT_NO_RECORD)
    add("--no-ask", action="store_true", default=None, text=messages.OPT_NO_ASK)
    add("--mirror", metavar="WHERE", action="append", text=messages.OPT_MIRROR)
    add("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, text=messages.OPT_SCRIPT)


def run(options: argparse.Namespace) -> int:
    target = target_from(options)
    settings = settings_from(_given(options), Path.cwd())
    rules = None
    if settings.select or settings.ignore:
        from traindx.diagnosis import chosen
        rules = chosen(settings.select, settings.ignore)
    _check_report_files(settings)
    if settings.mirror:
        from traindx import mirrors
        mirrors.check(settings.mirror)
    return _watch(target, settings, rules, language_from(settings.lang))


@dataclass(frozen=True)
class Target:
    """What to run: a script or a module, and its arguments."""

    script: str | None
    module: str | None
    args: tuple[str, ...]

    @property
    def shown(self) -> str:
        return self.script or f"-m {self.module}"

    @property
    def file(self) -> str | None:
        """A file whose folder is the user's own code: the script, or where the module's top package begins."""
        if self.script:
            return self.script
        top = str(self.module).split(".")[0]
        spec = None if top in LAUNCHERS else PathFinder.find_spec(top, [os.getcwd(), *sys.path])
        return spec.origin if spec else None

    @property
    def stem(self) -> str:
        return Path(self.script).resolve().stem if self.script else str(self.module).rsplit(".", 1)[-1]


def target_from(options: argparse.Namespace) -> Target:
    """Raises UsageError where there is nothing that python could run."""
    words = options.module if options.module is not None else options.command
    if not words:
        raise UsageError(messages.NO_SCRIPT_GIVEN)
    first, *rest = words
    if options.module is not None:
        return Target(None, first, tuple(rest))
    check_script(Path(first))
    return Target(first, None, tuple(rest))


def check_script(script: Path) -> None:
    if script.is_dir():
        if not (script / "__main__.py").is_file():
            raise UsageError(messages.A_DIRECTORY.fill(script=script, hint=_scripts_in(script)))
    elif not script.exists():
        hint = _nearest(script)
        raise UsageError(messages.NO_SUCH_SCRIPT.fill(script=script, folder=script.absolute().parent, hint=hint))
    else:
        try:
            script.open("rb").close()
        except OSError as problem:
            raise UsageError(messages.NOT_READABLE.fill(script=script, problem=reason(problem))) from None


def _scripts_in(folder: Path) -> Text:
    files = sorted(file.name for file in folder.glob("*.py"))[:6]
    return messages.HINT_SCRIPTS.fill(files=", ".join(files)) if files else EMPTY


def _nearest(script: Path) -> Text:
    import difflib
    names = [file.name for file in script.parent.glob("*.py")] if script.parent.is_dir() else []
    near = difflib.get_close_matches(script.name, names, n=1)
    return messages.HINT_NEAR.fill(near=script.parent / near[0]) if near else _scripts_in(script.parent)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as settings."""
    given = {key: value for key, value in vars(options).items() if value is not None}
    for key in ("select", "ignore", "mirror"):
        if key in given:
            given[key] = tuple(name.strip() for text in given[key] for name in text.split(",") if name.strip())
    if "max_steps" in given:
        given["max_steps"] = _count(given["max_steps"])
    return given


def _count(words: str) -> int:
    if not (words.isascii() and words.isdigit() and int(words)):
        raise UsageError(messages.NOT_A_COUNT.fill(value=words))
    return int(words)


def _check_report_files(settings: Settings) -> None:
    """A report that could not be written is said before the training, not hours later."""
    for key in REPORT_FILES:
        check_report_file(f"--{key}", getattr(settings, key))


def check_report_file(option: str, file: str | None) -> None:
    """Raises UsageError where the file could not be written; ``-`` is stdout, for JSON."""
    if file is None or (file == "-" and option == "--json"):
        return
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        new = not os.path.lexists(file)
        open(file, "ab").close()
        if new:  # no empty file is left where nothing comes to be written; another rank may have taken it away
            Path(file).unlink(missing_ok=True)
    except OSError as problem:
        raise UsageError(messages.CANNOT_WRITE.fill(option=option, file=file, problem=reason(problem))) from None


def _watch(target: Target, settings: Settings, rules: frozenset[str] | None, language: Language) -> int:
    """``rules`` None: all of them. Before the script is started, only what it needs is imported."""
    place = _place()
    if place is not None and not place.leads:
        return _follow(place, target, settings, language)
    with _folder(target, settings, language) as (folder, record), _meeting(place, folder):
        copying = _mirrors(target, settings, folder, record, language)
        watcher = _Watcher(rules, language, record)
        outcome = _launch(target, settings, folder, place, watcher)
        from traindx.diagnosis import after_run
        from traindx.ranks import gathered
        ranks = gathered(place, folder, outcome)  # where the script only starts ranks, the first one's recording is then the outcome's
        report = after_run(outcome.recording, outcome, rules, ranks)
        report.script = target.shown
        report.run = str(record.path) if record else None
        found = {judged.rule for judged in report.findings}
        report.remarks += [messages.WITHDRAWN.fill(rule=rule) for rule in watcher.said if rule not in found]
        if settings.prove and report.ranks:
            report.remarks.append(messages.NOT_PROVED_WITH_RANKS)
        elif settings.prove:
            _prove(report, target, language)
        _write_reports(report, outcome, record, settings, language)
        for mirror in copying:
            mirror.finish(_status_of(outcome), sorted(found))
        if record is not None and outcome.recording.steps:
            _conclude(record, language, ask=not settings.no_ask and place is None)
    return outcome.status or _fail_on(report, settings.fail_on)


def _place() -> Place | None:
    """Ours among several ranks; asked only where a launcher has said that there are ranks."""
    if "RANK" not in os.environ:
        return None
    from traindx.ranks import place_from
    return place_from(os.environ)


def _meeting(place: Place | None, folder: Path) -> AbstractContextManager[None]:
    """The other ranks are told the run folder meanwhile."""
    if place is None:
        return nullcontext()
    from traindx.ranks import meeting
    return meeting(place, folder)


def _launch(target: Target, settings: Settings, folder: Path, place: Place | None, watch: Callable[[Recording], None]) -> Outcome:
    from traindx import launch
    grouped = False
    if place is not None:
        from traindx.ranks import signalled_as_a_group
        grouped = signalled_as_a_group(os.environ)
    return launch.launch(
        launch.command_for(target.script, target.module, target.args), folder,
        {"script": target.file, "max_steps": settings.max_steps, "rank": place.rank if place else None}, watch,
        sys.stderr if settings.json == "-" else None, grouped)


def _follow(place: Place, target: Target, settings: Settings, language: Language) -> int:
    """Another rank than the one that reports: its recording goes to that one's run folder, and it says nothing."""
    from traindx import ranks
    home = ranks.met(place)
    if home is None:
        _complain(ranks.NO_MEETING.fill(rank=place.rank, leader=place.leader), language)
        with tempfile.TemporaryDirectory(prefix="traindx-") as folder:
            return _launch(target, settings, Path(folder), place, lambda recording: None).status
    outcome = _launch(target, settings, home, place, lambda recording: None)
    ranks.say_end(home, outcome)
    return outcome.status


def _mirrors(target: Target, settings: Settings, folder: Path, record: RunFolder | None, language: Language) -> list[Following]:
    """Started: they follow what the run writes into its folder."""
    if not settings.mirror:
        return []
    from traindx.core.secrets import masked
    from traindx.mirrors import About, Following
    name = record.path.name if record is not None else settings.name or target.stem
    about = About(name, target.shown, tuple(masked(target.args)), folder.resolve())
    started = [Following(where, about, lambda text: _complain(text, language), lambda: _settings_used(folder))
               for where in dict.fromkeys(settings.mirror)]
    for mirror in started:
        mirror.start()
    return started


def _status_of(outcome: Outcome) -> str:
    from traindx.runs.folder import status_of
    return status_of(outcome)


def _settings_used(folder: Path) -> dict[str, Any]:
    """As the record has them, after the first step: without secrets."""
    from traindx.runs.comparing import config_of
    from traindx.runs.reading import Run
    return config_of(Run(folder))


def _prove(report: Report, target: Target, language: Language) -> None:
    """Proofs are an extra: what goes wrong in them is said, and the report stands."""
    from traindx.cli.exam import bench_for
    from traindx.core.trials import Program
    from traindx.exam import prove_report
    try:
        with bench_for(Program(target.script, target.module, target.args, os.getcwd()), language) as bench:
            prove_report(bench, report)
    except OSError as problem:
        report.remarks.append(messages.CANNOT_PROVE.fill(problem=reason(problem)))


class _Watcher:
    """Called with the growing recording. The first time, while the script starts, it gets ready what comes later."""

    def __init__(self, rules: frozenset[str] | None, language: Language, record: RunFolder | None) -> None:
        self.rules = rules
        self.language = language
        self.record = record
        self.live: Live | None = None

    @property
    def said(self) -> list[str]:
        return self.live.said if self.live is not None else []

    def __call__(self, recording: Recording) -> None:
        if self.live is None:
            from traindx.live import Live
            self.live = Live(self.rules, self.language)
            if self.record is not None:
                self.record.start()
            self.live(recording)
            _get_ready()
            return
        if self.record is not None:
            self.record.follow(recording)
        self.live(recording)


def _get_ready() -> None:
    """Imports what the end needs."""
    for name in ("checklist.judging", "reporters.terminal", "reporters.json", "runs.facts", "runs.notes", "runs.yaml"):
        importlib.import_module(f"traindx.{name}")


@contextmanager
def _folder(target: Target, settings: Settings, language: Language) -> Iterator[tuple[Path, RunFolder | None]]:
    """The run folder; a temporary one where none is wanted or none can be made."""
    from traindx.runs.folder import begin
    record = None
    if not settings.no_record:
        try:
            record = begin(Path(settings.runs_dir), settings.name or target.stem, target.shown, target.args, target.file)
        except OSError as problem:
            _complain(messages.CANNOT_RECORD.fill(folder=settings.runs_dir, problem=reason(problem)), language)
    if record is not None:
        yield record.path, record
    else:
        with tempfile.TemporaryDirectory(prefix="traindx-") as folder:
            yield Path(folder), None


def _write_reports(report: Report, outcome: Outcome, record: RunFolder | None, settings: Settings,
                   language: Language) -> None:
    from traindx.reporters import json, style, terminal
    sys.stdout.flush()
    sys.stderr.write(terminal.render(report, language, style.style_for(sys.stderr), style.columns_of(sys.stderr)))
    sys.stderr.flush()
    if settings.json == "-":
        sys.stdout.write(json.render(report, language, indent=None))
    elif settings.json:
        write_file(settings.json, json.render(report, language), "--json", language)
    if settings.html:
        from traindx.reporters import html
        write_file(settings.html, html.render(report, language, Path.cwd()), "--html", language)
    if settings.sarif:
        from traindx.reporters import sarif
        write_file(settings.sarif, sarif.render(report, language), "--sarif", language)
    if record is not None:
        try:
            record.finish(outcome, json.document(report, language))
        except OSError as problem:
            _complain(messages.CANNOT_RECORD.fill(folder=record.path, problem=reason(problem)), language)


def _conclude(record: RunFolder, language: Language, ask: bool) -> None:
    """What the checklist could not tick goes into notes.md; three lines are asked for while it is fresh, on a terminal only."""
    from traindx.checklist.evidence import gather
    from traindx.checklist.judging import judge, not_done
    from traindx.runs import notes
    from traindx.runs.reading import Run
    try:
        notes.add_not_done(record.path, not_done(judge(gather(Run(record.path), record.path.parent))))
        if ask and notes.can_ask() and (said := notes.ask(language, notes.patiently)):
            notes.write(record.path, said)
    except OSError as problem:
        _complain(messages.CANNOT_RECORD.fill(folder=record.path, problem=reason(problem)), language)


def write_file(file: str, text: str, option: str, language: Language) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        _complain(messages.CANNOT_WRITE.fill(option=option, file=file, problem=reason(problem)), language)


def _complain(text: Text, language: Language) -> None:
    print(text.say(language), file=sys.stderr)


def _fail_on(report: Report, fail_on: str) -> int:
    """Status 3 where a finding of that level or above is there."""
    levels = {"error": ("error",), "warning": ("error", "warning")}.get(fail_on, ())
    return FAIL_ON_MET if any(judged.level in levels for judged in report.findings) else 0
