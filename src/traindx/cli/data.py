"""``traindx data``: look at what reaches the model and the loss."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError

if TYPE_CHECKING:
    from traindx.cli.run import Target
    from traindx.launch import Outcome
    from traindx.samples.report import DataReport

ABOUT = Text("look at the samples and labels that reach the model", "查看真正进入模型的样本和标签")
DETAILS = Text(
    "Runs the script until one pass over the training data and one evaluation are seen, and writes a page with samples to look at and mark, "
    "duplicates, conflicting and doubtful labels, classes, and where the splits differ. The script runs in a sandbox: what it writes is "
    "not kept, and it has no network unless it is given one. Its own output goes to stderr.",
    "让脚本跑到看完一遍训练数据、做过一次评估为止，写出一个页面：可以逐个查看并标记样本，"
    "列出重复样本、矛盾和可疑的标签、类别分布、各划分的差别。脚本在沙盒里运行：写入的内容不会保留，默认不能联网。脚本自己的输出改走 stderr。")
OPT_RANDOM = Text("show N random samples of each split instead of {few}", "每个划分随机看 N 个样本（默认 {few} 个）")
OPT_SEED = Text("which random samples (default: 0)", "抽样本用的随机种子（默认 0）")
OPT_HTML = Text("where the page goes (default: traindx-data-NAME.html)", "页面写到哪里（默认 traindx-data-NAME.html）")
OPT_JSON = Text("write everything as JSON; - for stdout", "把全部结果写成 JSON；- 表示 stdout")
OPT_MAX_STEPS = Text("stop after N steps at the latest (default: {steps})", "最多走 N 步就停下（默认 {steps}）")
OPT_SERVE = Text("show the page at a local address and save marks into a file as they are made", "在本机地址打开页面，做的标记随时存进文件")
NOT_A_NUMBER = Text("argument {option}: must be a whole number above 0, but is {value!r}",
                    "参数 {option}：应当是大于 0 的整数，现在是 {value!r}")
NOT_OURS = Text("{file} exists and is no page of traindx: choose another name with --html",
                "{file} 已经存在，且不是 traindx 的页面：请用 --html 换个名字")
NO_SAMPLES = Text("No samples were seen in {script}: {why}. The script ended with status {status}.",
                  "在 {script} 里没有看到样本：{why}。脚本的退出状态是 {status}。")
NO_TENSORS = Text("no model was given a plain tensor", "没有模型收到过普通张量")
NO_MODEL = Text("no torch module was called", "没有调用过 torch 模块")
FEW, STEPS, MOST = 5, 2000, 1000
MARK = "traindx data"


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option

    def add(*names: str, text: Text, **options: Any) -> None:
        parser.add_argument(*names, help=text.say(language), **options)
    parser.usage = "traindx data [OPTIONS] SCRIPT [ARGS...]\n       traindx data [OPTIONS] -m MODULE [ARGS...]"
    add("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, text=messages.OPT_MODULE)
    add("--random", metavar="N", text=OPT_RANDOM.fill(few=FEW))
    add("--seed", metavar="N", default="0", text=OPT_SEED)
    add("--html", metavar="FILE", text=OPT_HTML)
    add("--json", metavar="FILE", text=OPT_JSON)
    add("--max-steps", metavar="N", text=OPT_MAX_STEPS.fill(steps=STEPS))
    add("--network", action="store_true", text=messages.OPT_NETWORK)
    add("--serve", action="store_true", text=OPT_SERVE)
    add_language_option(parser, language)
    add("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, text=messages.OPT_SCRIPT)


def run(options: argparse.Namespace) -> int:
    from traindx.cli.run import target_from
    from traindx.cli.shapes import NO_SCRIPT, check_file, look_at
    from traindx.config import settings_from
    if not (options.module if options.module is not None else options.command):
        raise UsageError(NO_SCRIPT.fill(command="data"))
    target, began = target_from(options), datetime.now().astimezone()
    settings = settings_from({}, Path.cwd())
    wanted = min(MOST, _count("--random", options.random) or FEW)
    page = _page(options.html, target.stem)
    check_file("--json", options.json)
    looks = {"samples": {"wanted": wanted, "seed": _count("--seed", options.seed, 0) or 0}}
    with look_at(target, looks, _count("--max-steps", options.max_steps) or STEPS, options.network) as (outcome, folder):
        from traindx.samples.report import report_of
        report = report_of(outcome.recording, folder, target.shown)
    keep = partial(_keep, Path(settings.runs_dir), target, page, began) if report.splits and not settings.no_record else None
    if keep is not None:
        keep(viewed=None)
    return _tell(report, outcome, page, options, language_from(options.lang), keep)


def _keep(runs_dir: Path, target: Target, page: Path, began: datetime, viewed: str | None) -> None:
    """Beside the runs, for the checklist: that somebody looked always, that a page was written where there are runs."""
    from traindx.runs import beside
    if viewed is None and not runs_dir.is_dir():
        return
    with suppress(OSError):
        beside.keep(runs_dir, "data", target.shown, target.stem, target.args, {"page": str(page.absolute()), "viewed": viewed}, began)


def _count(option: str, value: str | None, least: int = 1) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and int(value) >= least):
        raise UsageError(NOT_A_NUMBER.fill(option=option, value=value))
    return int(value)


def _page(asked: str | None, stem: str) -> Path:
    """Where the page goes: never over a file that is not our own."""
    from traindx.cli.shapes import check_file
    file = Path(asked or f"traindx-data-{stem}.html")
    try:
        ours = not file.exists() or file.stat().st_size == 0 or MARK in file.read_text(encoding="utf-8", errors="replace")[:2000]
    except OSError:
        ours = True  # said below
    if not ours:
        raise UsageError(NOT_OURS.fill(file=file))
    existed = file.exists()
    check_file("--html", str(file))
    if not existed:
        file.unlink(missing_ok=True)
    return file


def _tell(report: DataReport, outcome: Outcome, page: Path, options: argparse.Namespace, language: Language,
          keep: Callable[..., None] | None = None) -> int:
    from traindx.cli.shapes import NOTHING_SEEN, write_file
    from traindx.reporters.style import columns_of, style_for
    from traindx.samples import told
    from traindx.samples.page import render
    from traindx.samples.report import document, dumps
    if not report.splits:
        sys.stderr.write(_nothing(outcome, report.script).say(language) + "\n")
        return outcome.status or NOTHING_SEEN
    html = render(report, language)
    write_file("--html", str(page), html)
    json = dumps(document(report, str(page), language)) if options.json else ""
    if options.json and options.json != "-":
        write_file("--json", options.json, json)
    shown = json if options.json == "-" else told.render(report, str(page), language, style_for(sys.stdout), columns_of(sys.stdout))
    sys.stdout.write(shown)
    sys.stdout.flush()
    if options.serve:
        _serve(html, page, language, keep)
    return outcome.status


def _nothing(outcome: Outcome, script: str) -> Text:
    from traindx.core.observed.program import ForwardSeen
    from traindx.diagnosis import no_training
    seen = outcome.recording.of(ForwardSeen)
    why = NO_TENSORS if seen else no_training(outcome.recording, outcome.status != 0) or NO_MODEL
    return NO_SAMPLES.fill(script=script, why=why, status=outcome.status)


def _serve(html: str, page: Path, language: Language, keep: Callable[..., None] | None) -> None:
    from traindx.samples import words
    from traindx.samples.serve import Review
    marks = page.with_suffix(".marks.json")

    def opened() -> None:
        if keep is not None:
            keep(viewed=datetime.now().astimezone().isoformat(timespec="seconds"))
    with Review(html, marks, opened=opened) as server:
        sys.stderr.write(words.SERVING.fill(url=server.url, file=marks).say(language) + "\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
