"""``traindx exam``: the ordered tree, and each suspicion proved by a controlled re-run."""
from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError, reason

if TYPE_CHECKING:
    from traindx.core.exams import ExamReport
    from traindx.core.trials import Budget, Program
    from traindx.experiments.bench import Bench, Engine

ABOUT = Text("walk the diagnosis tree, and prove each cause by re-running the script with one thing changed",
             "按顺序走一遍诊断树：每次只改一处，重跑脚本，证实病因")
DETAILS = Text(
    "Runs the unmodified script again and again for a few steps, in child processes that cannot write your files, and changes one "
    "condition at a time. Steps: 0 overfit, 1 data, 2 output, 3 lr, 4 init, 5 numerics, 6 capacity; also: seeds, resume. "
    "It stops at the first step that fails. Exit status 0 whatever is found; 2 for bad usage, or a program that cannot be examined.",
    "脚本一行不改，一次次重跑几步，每次只改一个条件；重跑在子进程里，写不了你的文件。步骤：0 overfit、1 data、2 output、3 lr、4 init、"
    "5 numerics、6 capacity；另有 seeds、resume。遇到第一个不通过的步骤就停。无论查出什么，退出状态都是 0；用法有错、或程序没法检查时是 2。")
OPT_STEP = Text("only these steps, by name or number, separated by commas", "只做这些步骤（名字或编号，用逗号分隔）")
OPT_ALL = Text("go on past a step that fails (later verdicts then rest on a training known to be wrong)",
               "某一步没过也继续（后面的结论就建立在一个已知有错的训练上）")
OPT_FINDING = Text("prove only this finding, as family/slug", "只证实这一条诊断结论，写作 family/slug")
OPT_SEEDS = Text("number of seeds for --step seeds (default 5)", "--step seeds 用几个种子（默认 5）")
OPT_SECONDS = Text("budget of seconds of one run (default 60)", "每次运行最多几秒（默认 60）")
OPT_TOTAL = Text("budget of seconds of the whole exam (default: none)", "整次检查最多几秒（默认不限）")
OPT_MEMORY = Text("budget of memory of one run, in GiB (default: what is free)", "每次运行最多用多少内存，单位 GiB（默认看空闲多少）")
OPT_JOBS = Text("runs at the same time (default: from cores and memory)", "同时跑几个（默认看核数和内存）")
OPT_ON = Text("where to run: local, ray, or ray://host:port", "在哪里跑：local、ray 或 ray://host:port")
OPT_NETWORK = Text("let the runs use the network", "允许重跑的程序访问网络")
OPT_ISOLATE = Text("a fresh python for every run (slow, for scripts that do not survive a fork)",
                   "每次运行都用全新的 python（慢；给不能 fork 的脚本用）")
OPT_RESUME = Text("take runs that an interrupted exam has already made", "沿用上次中断时已经跑完的部分")
OPT_NO_RECORD = Text("do not keep the result beside the runs", "不把结果存到运行记录旁边")
KEPT = Text("kept in {file}; traindx checklist reads it", "已存入 {file}，traindx checklist 会用到")
OPT_RESUME_ARGS = Text("for --step resume: what to add to the command, as '--resume {checkpoint}' (default: an option found in argparse, "
                       "else the same command again)",
                       "用于 --step resume：续训时给命令加上什么，例如 '--resume {checkpoint}'（默认用 argparse 里找到的选项，"
                       "没有就原样再跑一次）")
OPT_HTML = Text("write the report as one HTML page with all curves", "把报告写成一个带全部曲线的 HTML 页面")
OPT_JSON = Text("write the report as JSON; - for stdout", "把报告写成 JSON；- 表示 stdout")
GO_ON = Text("the runs made so far are kept; the same command with --resume goes on from there",
             "已经跑完的部分留着；同样的命令加上 --resume 就接着做")
NO_SCRIPT = Text("traindx exam needs a script or -m MODULE, for example: traindx exam train.py --epochs 3",
                 "traindx exam 需要一个脚本或 -m MODULE，例如：traindx exam train.py --epochs 3")
UNKNOWN_PLACE = Text("--on {value!r}: known are local, ray and ray://host:port", "--on {value!r}：可用的有 local、ray 和 ray://host:port")
NOT_SPLIT = Text("{option} {value!r}: a quotation mark, or a backslash at the end, is left open",
                 "{option} {value!r}：引号没有配对，或者末尾多了反斜杠")
NOT_A_NUMBER = Text("argument {option}: must be a number above 0, but is {value!r}", "参数 {option}：应当是大于 0 的数，现在是 {value!r}")


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option

    def add(*names: str, text: Text, **options: object) -> None:
        parser.add_argument(*names, help=text.say(language), **options)  # type: ignore[arg-type]
    parser.usage = "traindx exam [OPTIONS] SCRIPT [ARGS...]\n       traindx exam [OPTIONS] -m MODULE [ARGS...]"
    add("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, text=messages.OPT_MODULE)
    add("--step", "--steps", dest="step", metavar="STEPS", action="append", default=[], text=OPT_STEP)
    add("--all", dest="everything", action="store_true", text=OPT_ALL)
    add("--finding", metavar="RULE", text=OPT_FINDING)
    add("-n", "--seeds", dest="seeds", metavar="N", default="5", text=OPT_SEEDS)
    add("--json", metavar="FILE", text=OPT_JSON)
    add("--html", metavar="FILE", text=OPT_HTML)
    add_language_option(parser, language)
    add("--seconds", metavar="S", default="60", text=OPT_SECONDS)
    add("--total-seconds", metavar="S", text=OPT_TOTAL)
    add("--memory", metavar="GIB", text=OPT_MEMORY)
    add("--jobs", metavar="N", text=OPT_JOBS)
    add("--on", default="local", text=OPT_ON)
    add("--network", action="store_true", text=OPT_NETWORK)
    add("--isolate", action="store_true", text=OPT_ISOLATE)
    add("--resume", action="store_true", text=OPT_RESUME)
    add("--runs-dir", metavar="DIR", text=messages.OPT_RUNS_DIR)
    add("--no-record", action="store_true", default=None, text=OPT_NO_RECORD)
    add("--resume-args", metavar="ARGS", text=OPT_RESUME_ARGS)
    add("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, text=messages.OPT_SCRIPT)


def run(options: argparse.Namespace) -> int:
    from traindx import exam
    from traindx.config import settings_from
    from traindx.experiments import kept
    program = program_from(options)
    steps = exam.chosen_steps(options.step)
    plan, seeds = _plan(options), int(_number("-n", options.seeds))
    language, began = language_from(options.lang), datetime.now().astimezone()
    settings = settings_from({"runs_dir": options.runs_dir, "no_record": options.no_record}, Path.cwd())
    rule = rule_named(options.finding) if options.finding else None
    _check_quotes("--resume-args", options.resume_args)
    shown = program.script or f"-m {program.module}"
    folder = kept.folder_for(program)
    if not options.resume:
        kept.forget(folder)
    with bench_for(program, language, folder=folder, **plan) as bench:
        if rule is not None:
            report = exam.prove_one(bench, shown, rule)
        else:
            report = exam.examine(bench, shown, steps, options.everything, seeds, options.resume_args)
    _write(report, options, language)
    if not settings.no_record:
        _keep(report, program, Path(settings.runs_dir), began, language)
    if report.interrupted or report.unfinished:
        sys.stderr.write(f"{messages.SAYS.fill(what=GO_ON).say(language)}\n")
    else:
        kept.forget(folder)
    return 130 if report.interrupted else 2 if report.impossible else 0


def program_from(options: argparse.Namespace) -> Program:
    """Raises UsageError where there is nothing that python could run."""
    from traindx.cli.run import check_script
    from traindx.core.trials import Program
    words = options.module if options.module is not None else options.command
    if not words:
        raise UsageError(NO_SCRIPT)
    first, *rest = words
    if options.module is not None:
        return Program(None, first, tuple(rest), os.getcwd())
    check_script(Path(first))
    return Program(first, None, tuple(rest), os.getcwd())


def rule_named(name: str) -> str:
    from traindx.diagnosis import chosen
    return next(iter(chosen((name,), ())))


def _number(option: str, words: str) -> float:
    try:
        value = float(words)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(NOT_A_NUMBER.fill(option=option, value=words))
    return value


def _check_quotes(option: str, words: str | None) -> None:
    try:
        shlex.split(words or "")
    except ValueError:
        raise UsageError(NOT_SPLIT.fill(option=option, value=words)) from None


def _plan(options: argparse.Namespace) -> dict[str, Any]:
    """The options of :func:`bench_for`. Raises UsageError."""
    from traindx.core.trials import Budget
    if options.on not in ("local", "ray") and not options.on.startswith("ray://"):
        raise UsageError(UNKNOWN_PLACE.fill(value=options.on))
    memory = None if options.memory is None else int(_number("--memory", options.memory) * 2**30)
    return {
        "budget": Budget(seconds=_number("--seconds", options.seconds), memory=memory), "on": options.on,
        "seconds": None if options.total_seconds is None else _number("--total-seconds", options.total_seconds),
        "jobs": None if options.jobs is None else int(_number("--jobs", options.jobs)), "isolate": options.isolate,
        "network": options.network}


@contextmanager
def bench_for(program: Program, language: Language, budget: Budget | None = None, on: str = "local", seconds: float | None = None,
              jobs: int | None = None, isolate: bool = False, network: bool = False, folder: Path | None = None) -> Iterator[Bench]:
    """A bench with its engine started; both end with the block. ``seconds`` is the time for all of it."""
    from traindx.experiments.bench import Bench
    from traindx.progress import progress_on
    with _engine(on, jobs, isolate) as engine:
        yield Bench(engine, program, budget, progress_on(sys.stderr, language), seconds, network, folder)


@contextmanager
def _engine(on: str, jobs: int | None, isolate: bool) -> Iterator[Engine]:
    if on == "local":
        from traindx.engine.local import LocalEngine
        with LocalEngine(jobs, isolate=isolate) as local:
            yield local
    else:
        from traindx.engine.ray import RayEngine
        with RayEngine(None if on == "ray" else on, isolate=isolate) as cluster:
            yield cluster


def _write(report: ExamReport, options: argparse.Namespace, language: Language) -> None:
    from traindx.cli.run import write_file
    from traindx.reporters import exam_html, exam_json, exam_terminal, style
    if options.json == "-":
        sys.stdout.write(exam_json.render(report, language, indent=None))
    else:
        sys.stdout.write(exam_terminal.render(report, language, style.style_for(sys.stdout), style.columns_of(sys.stdout)))
    if options.json and options.json != "-":
        write_file(options.json, exam_json.render(report, language), "--json", language)
    if options.html:
        write_file(options.html, exam_html.render(report, language, Path.cwd()), "--html", language)


def _keep(report: ExamReport, program: Program, runs_dir: Path, began: datetime, language: Language) -> None:
    """Beside the runs, for the checklist; an exam that found nothing out leaves nothing."""
    from traindx.reporters import exam_json
    from traindx.runs import beside
    if report.seeds is None and all(step.verdict == "not-checked" for step in report.steps):
        return
    name = Path(report.script).stem if program.script else str(program.module).rsplit(".", 1)[-1]
    try:
        file = beside.keep(runs_dir, "exam", report.script, name, program.args, exam_json.document(report, language), began)
    except OSError as problem:
        sys.stderr.write(messages.CANNOT_RECORD.fill(folder=runs_dir, problem=reason(problem)).say(language) + "\n")
    else:
        sys.stderr.write(f"{messages.SAYS.fill(what=KEPT.fill(file=file)).say(language)}\n")
