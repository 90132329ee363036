"""``traindx speed``: baseline, bottleneck, data pipeline, then compute; each change timed in pairs on the unmodified script."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError

if TYPE_CHECKING:
    from traindx.core.speed import SpeedReport

ABOUT = Text("what holds the training up, with file and line, and what would make it faster", "训练卡在哪里（指到文件和行号），怎样能更快")
DETAILS = Text(
    "Times the unmodified script in child processes that cannot write your files: first as it is, then with one thing changed and changed "
    "back, block by block. Order: baseline, bottleneck, data pipeline, compute. Nothing is changed in the script; the lines to write are shown. "
    "Options stand before the script.",
    "脚本一行不改，在写不了你文件的子进程里计时：先按原样，再改一处跑一段、改回来跑一段，交替进行。顺序：基线、瓶颈、数据管线、计算。"
    "脚本不会改动，只告诉你该写哪几行。选项写在脚本之前。")
OPT_SCRIPT = Text("the training script, then its own arguments", "训练脚本，后面是它自己的参数")
OPT_MODULE = Text("time a module, as python -m does", "给模块计时，同 python -m")
OPT_JSON = Text("write the report as JSON; - for stdout", "把报告写成 JSON；- 表示 stdout")
OPT_HTML = Text("write the report as one HTML page", "把报告写成一个 HTML 页面")
OPT_QUICK = Text("only baseline and bottleneck: try no changes", "只测基线和瓶颈，不尝试改动")
OPT_FORCE = Text("try step 4 (compute) even while the training waits for its data", "即使训练在等数据，也试第 4 步（计算）")
OPT_ANY_LOAD = Text("give verdicts even on a machine that is busy with other things", "机器忙着别的事，也照样下结论")
OPT_SECONDS = Text("time allowed for each timed run (default: 20)", "每次计时运行最多用时，单位秒（默认 20）")
OPT_WORKERS = Text("try at most so many loader workers (default: one for each core)", "loader 最多试几个 worker（默认每个核一个）")
OPT_ONLY = Text("of step 4 only these: {names}; separated by commas", "第 4 步只试这些：{names}；用逗号分隔")
OPT_NETWORK = Text("let the runs use the network", "允许重跑的程序访问网络")
NAMES = ("fused", "foreach", "channels_last", "bf16", "larger-batch", "compile")
NO_SCRIPT = Text("traindx speed needs a script or -m MODULE, for example: traindx speed train.py --epochs 3",
                 "traindx speed 需要一个脚本或 -m MODULE，例如：traindx speed train.py --epochs 3")
NOT_A_NUMBER = Text("argument {option}: must be a number above 0, but is {value!r}", "参数 {option}：应当是大于 0 的数，现在是 {value!r}")
NOT_WHOLE = Text("argument {option}: must be a whole number above 0, but is {value!r}",
                 "参数 {option}：应当是大于 0 的整数，现在是 {value!r}")
UNKNOWN = Text("--only {value!r} is not known. Known: {known}", "--only：不认识 {value!r}。可用的有：{known}")
INTERRUPTED = 130


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option

    def add(*names: str, text: Text, **options: Any) -> None:
        parser.add_argument(*names, help=text.say(language), **options)
    parser.usage = "traindx speed [OPTIONS] SCRIPT [ARGS...]\n       traindx speed [OPTIONS] -m MODULE [ARGS...]"
    add("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, text=OPT_MODULE)
    add("--json", metavar="FILE", text=OPT_JSON)
    add("--html", metavar="FILE", text=OPT_HTML)
    add_language_option(parser, language)
    add("--quick", action="store_true", text=OPT_QUICK)
    add("--force", action="store_true", text=OPT_FORCE)
    add("--any-load", action="store_true", text=OPT_ANY_LOAD)
    add("--only", metavar="NAMES", text=OPT_ONLY.fill(names=", ".join(NAMES)))
    add("--seconds", metavar="S", default="20", text=OPT_SECONDS)
    add("--max-workers", metavar="N", text=OPT_WORKERS)
    add("--network", action="store_true", text=OPT_NETWORK)
    add("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, text=OPT_SCRIPT)


def run(options: argparse.Namespace) -> int:
    from traindx.cli.run import check_report_file, target_from
    from traindx.core.trials import Program
    from traindx.progress import progress_on
    from traindx.speed.answering import report_on
    if not (options.command or options.module):
        raise UsageError(NO_SCRIPT)
    target = target_from(options)
    language = language_from(options.lang)
    seconds, most_workers, wanted = _number("--seconds", options.seconds), _whole("--max-workers", options.max_workers), _names(options.only)
    for option, file in (("--json", options.json), ("--html", options.html)):
        check_report_file(option, file)
    program = Program(target.script, target.module, target.args, str(Path.cwd()))
    try:
        report = report_on(
            program, target.shown, progress_on(sys.stderr, language), seconds=seconds, force=options.force or bool(options.only),
            quick=options.quick, any_load=options.any_load, most_workers=most_workers, wanted=wanted, network=options.network)
    except KeyboardInterrupt:
        return INTERRUPTED
    _write(report, options, language)
    return INTERRUPTED if report.interrupted else 0


def _write(report: SpeedReport, options: argparse.Namespace, language: Language) -> None:
    from traindx.cli.run import write_file
    from traindx.reporters import speed, speed_html
    from traindx.reporters.style import columns_of, style_for
    stream = sys.stderr if options.json == "-" else sys.stdout
    stream.write(speed.render(report, language, style_for(stream), columns_of(stream)))
    if options.json == "-":
        sys.stdout.write(speed.render_json(report, language, None))
    elif options.json:
        write_file(options.json, speed.render_json(report, language), "--json", language)
    if options.html:
        write_file(options.html, speed_html.render(report, language), "--html", language)


def _number(option: str, words: str) -> float:
    try:
        value = float(words)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(NOT_A_NUMBER.fill(option=option, value=words))
    return value


def _whole(option: str, words: str | None) -> int | None:
    if words is None:
        return None
    if not (words.isascii() and words.isdigit() and int(words)):
        raise UsageError(NOT_WHOLE.fill(option=option, value=words))
    return int(words)


def _names(words: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (words or "").split(",") if name.strip())
    for name in names:
        if name not in NAMES:
            raise UsageError(UNKNOWN.fill(value=name, known=", ".join(NAMES)))
    return names
