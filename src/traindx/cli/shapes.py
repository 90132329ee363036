"""``traindx shapes``: one training step of a script, annotated with the shape of everything."""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError, reason

if TYPE_CHECKING:
    from traindx.cli.run import Target
    from traindx.launch import Outcome
    from traindx.signals.assertions import Style

ABOUT = Text("the shape of everything in one training step", "一个训练步里每样东西的形状")
DETAILS = Text(
    "Runs the script for {steps} training step{steps:|s} and shows the second, line by line. Which dimension is the batch is measured: a child "
    "process repeats that step with one sample less, and with one sample only. It runs in a sandbox: what it writes is not kept, and it has "
    "no network unless it is given one. The script's own output goes to stderr.",
    "让脚本走 {steps} 个训练步，逐行显示第 2 步。哪一维是 batch 靠实测：子进程把这一步重跑两遍，一遍少一个样本，一遍只有一个样本。"
    "脚本在沙盒里运行：写入的内容不会保留，默认不能联网。脚本自己的输出改走 stderr。")
OPT_ASSERT = Text("print shape assertions to paste instead of the step", "不显示这一步，改为打印可以粘贴的形状断言")
OPT_STYLE = Text("how assertions are written (default: plain)", "断言的写法（默认 plain）")
OPT_JSON = Text("write everything as JSON; - for stdout", "把全部结果写成 JSON；- 表示 stdout")
OPT_HTML = Text("write one HTML page", "写成一个 HTML 页面")
NO_STEP = Text("No training step was seen in {script}: {why}. The script ended with status {status}.",
               "在 {script} 里没有看到训练步：{why}。脚本的退出状态是 {status}。")
NO_TRACE = Text("the operations of no step could be recorded", "没有哪一步的运算能记下来")
COMPILED = Text("torch.compile is in use, and what happens inside is not seen; run it once without",
                "用了 torch.compile，里面的运算看不到；请先去掉它，再运行一次")
NO_SCRIPT = Text("traindx {command} needs a script or -m MODULE, for example: traindx {command} train.py --epochs 3",
                 "traindx {command} 需要一个脚本或 -m MODULE，例如：traindx {command} train.py --epochs 3")
NO_ASSERTION = Text("# no variable whose shape can be asserted was seen", "# 没有看到可以写断言的变量")
STEPS = 3
NOTHING_SEEN = 1


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option

    def add(*names: str, text: Text, **options: Any) -> None:
        parser.add_argument(*names, help=text.say(language), **options)
    parser.usage = "traindx shapes [OPTIONS] SCRIPT [ARGS...]\n       traindx shapes [OPTIONS] -m MODULE [ARGS...]"
    parser.description = DETAILS.fill(steps=STEPS).say(language)
    add("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, text=messages.OPT_MODULE)
    add("--assert", dest="asserting", action="store_true", text=OPT_ASSERT)
    add("--style", choices=("plain", "jaxtyping"), default="plain", text=OPT_STYLE)
    add("--json", metavar="FILE", text=OPT_JSON)
    add("--html", metavar="FILE", text=OPT_HTML)
    add("--network", action="store_true", text=messages.OPT_NETWORK)
    add_language_option(parser, language)
    add("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, text=messages.OPT_SCRIPT)


def run(options: argparse.Namespace) -> int:
    from traindx.cli.run import target_from
    if not (options.module if options.module is not None else options.command):
        raise UsageError(NO_SCRIPT.fill(command="shapes"))
    target = target_from(options)
    for option in ("json", "html"):
        check_file(f"--{option}", getattr(options, option))
    began = datetime.now().astimezone()
    with look_at(target, {"shapes": {}}, STEPS, options.network) as (outcome, _):
        pass
    return _tell(outcome, target, options, language_from(options.lang), began)


@contextmanager
def look_at(target: Target, looks: dict[str, Any], steps: int, network: bool) -> Iterator[tuple[Outcome, Path]]:
    """Runs the script with special looks on, in the sandbox of controlled re-runs; its output goes to stderr.

    The outcome, and the folder with all that was recorded.
    """
    import tempfile

    from traindx import launch
    from traindx.core.recording import Recording
    from traindx.core.trials import Program
    from traindx.engine import apart
    program = Program(target.script, target.module, target.args, os.getcwd())
    with tempfile.TemporaryDirectory(prefix="traindx-") as place:
        folder = Path(place) / "trial"
        own = apart.own_folder(folder)
        outcome = launch.launch(lambda variables: apart.command(program, folder, network, variables), own,
                                {"script": target.file, "max_steps": steps, "looks": looks}, stdout=2)
        yield replace(outcome, recording=Recording.read(own)), own  # anew: paths of a copy are the user's again


def _tell(outcome: Outcome, target: Target, options: argparse.Namespace, language: Language, began: datetime) -> int:
    from traindx.reporters import shapes as reporter
    from traindx.reporters.style import columns_of, style_for
    from traindx.signals.assertions import assertions_of, text_of
    from traindx.signals.shapes import shapes_of
    shapes, script = shapes_of(outcome.recording), target.shown
    if shapes is None:
        sys.stderr.write(_nothing(outcome, script).say(language) + "\n")
        return outcome.status or NOTHING_SEEN
    style: Style = options.style
    assertions = assertions_of(outcome.recording, Path.cwd(), style)
    text = text_of(assertions, Path.cwd())
    if options.asserting:
        _keep(target, len(assertions), style, began)
    if options.html:
        write_file("--html", options.html, reporter.html(shapes, script, text, language))
    json = reporter.dumps(reporter.document(shapes, script, assertions, text, language)) if options.json else ""
    if options.json and options.json != "-":
        write_file("--json", options.json, json)
    shown = text or NO_ASSERTION.say(language) + "\n" if options.asserting else reporter.render(
        shapes, script, language, style_for(sys.stdout), columns_of(sys.stdout))
    sys.stdout.write(json if options.json == "-" else shown)
    return outcome.status


def _keep(target: Target, count: int, style: str, began: datetime) -> None:
    """Beside the runs, for the checklist, where there are any; it is an extra."""
    from traindx.config import settings_from
    from traindx.runs import beside
    settings = settings_from({}, Path.cwd())
    if not settings.no_record and Path(settings.runs_dir).is_dir():
        with suppress(OSError):
            beside.keep(Path(settings.runs_dir), "shapes", target.shown, target.stem, target.args, {"assertions": count, "style": style}, began)


def _nothing(outcome: Outcome, script: str) -> Text:
    from traindx.core.observed import Compiled
    from traindx.diagnosis import no_training
    compiled = bool(outcome.recording.of(Compiled))
    why = no_training(outcome.recording, outcome.status != 0) or (COMPILED if compiled else NO_TRACE)
    return NO_STEP.fill(script=script, why=why, status=outcome.status)


def check_file(option: str, file: str | None) -> None:
    """A file that could not be written is said before the script runs."""
    if file is None or file == "-":
        return
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        open(file, "ab").close()
    except OSError as problem:
        raise UsageError(messages.CANNOT_WRITE.fill(option=option, file=file, problem=reason(problem))) from None


def write_file(option: str, file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        raise UsageError(messages.CANNOT_WRITE.fill(option=option, file=file, problem=reason(problem))) from None
