"""``traindx memory``: what a training takes, by formula or traced from the program itself, and what to do where it does not fit."""
from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError

if TYPE_CHECKING:
    from traindx.core.memory import Account
    from traindx.estimate.formula import Request
    from traindx.estimate.gpus import Gpu
    from traindx.estimate.shapes import Shape, Work

ABOUT = Text("will it fit: where the memory goes, and what to change first", "装得下吗：显存花在哪里，先改什么")
DETAILS = Text(
    "Traces two steps of the unmodified script on tensors without data, or counts by formula from --params, sizes or a config.json. "
    "Options stand before the script.",
    "用没有数据的张量追踪脚本的两步，脚本一行不改；或者按 --params、各个尺寸、config.json 用公式计算。选项写在脚本之前。")
OPT_SCRIPT = Text("the training script, then its own arguments", "训练脚本，后面是它自己的参数")
OPT_MODULE = Text("trace a module, as python -m does", "追踪模块，同 python -m")
OPT_GPU = Text("does it fit on this card: a name (a100-80, h200, rtx-4090) or a size (24GB); repeatable",
               "这张卡装得下吗：型号（a100-80、h200、rtx-4090）或大小（24GB）；可重复")
OPT_JSON = Text("write the account as JSON; - for stdout", "把显存账写成 JSON；- 表示 stdout")
OPT_HTML = Text("write the account as one HTML page with the timeline", "把显存账写成一个带时间线的 HTML 页面")
OPT_MEASURE = Text("also run two steps for real, and explain the difference", "再真正运行两步，并解释差额")
OPT_QUICK = Text("only the account: try no remedies", "只算账，不试各种省法")
OPT_SECONDS = Text("time allowed for each traced run (default: 120)", "每次追踪最多用时，单位秒（默认 120）")
OPT_RANKS = Text("ranks to shard over (default: 8)", "分片的进程数（默认 8）")
OPT_PARAMS = Text("number of parameters, as 7e9 or 7B", "参数量，写作 7e9 或 7B")
OPT_CONFIG = Text("a Hugging Face config.json on disk", "磁盘上的 Hugging Face config.json")
OPT_SIZE = {
    "layers": Text("layers of the transformer", "Transformer 层数"), "hidden": Text("width of the model", "隐藏维度"),
    "heads": Text("attention heads", "注意力头数"), "kv-heads": Text("key-value heads (GQA)", "KV 头数（GQA）"),
    "vocab": Text("size of the vocabulary", "词表大小"), "seq": Text("tokens a sample", "每个样本的词元数"),
    "batch": Text("samples in a micro-batch", "一个 micro-batch 的样本数")}
OPT_OPTIMIZER = Text("optimizer (default: adamw)", "优化器（默认 adamw）")
OPT_PRECISION = Text("fp32, autocast, half (with an fp32 master copy; the default) or pure-half",
                     "fp32、autocast、half（带 fp32 主权重，默认）或 pure-half")
OPT_SHARDING = Text("how states are shared over --ranks (default: none)", "状态怎样分到 --ranks 个进程（默认不分）")
OPT_LORA = Text("adapters of this rank on a frozen base", "冻结基座，只训练这个秩的适配器")
OPT_QLORA = Text("the same on a 4-bit base", "同上，基座为 4 bit")
OPT_NO_FLASH = Text("attention that keeps its scores", "注意力不融合，保存分数矩阵")
OPT_CHECKPOINTING = Text("every layer recomputed in backward", "每一层都在反向传播时重算")
OPT_DROPOUT = Text("with dropout masks", "计入 dropout 掩码")
OPT_INFERENCE = Text("forward only: weights and key-value cache", "只做推理：权重和 KV 缓存")

NOTHING_ASKED = Text("traindx memory needs a script, --params, --config, or --layers with --hidden. For example: "
                     "traindx memory --gpu 24GB train.py, or traindx memory --params 7e9",
                     "traindx memory 需要一个脚本，或 --params、--config、--layers 加 --hidden。例如："
                     "traindx memory --gpu 24GB train.py，或 traindx memory --params 7e9")
BOTH_ASKED = Text("{option} is for the formula, and {script} is traced: give one of them",
                  "{option} 用于公式，而 {script} 要追踪：两者只能给一个")
NOT_A_NUMBER = Text("--{option}: {value!r} is not a number above 0{hint}", "--{option}：{value!r} 不是大于 0 的数{hint}")
PARAMETERS = Text("{count} parameter{count:|s}", "{count} 个参数")
LIKE = Text(" (as 7e9, 7B, 350M)", "（例如 7e9、7B、350M）")
NOT_WHOLE = Text("--{option}: {value!r} is not a whole number above 0", "--{option}：{value!r} 不是大于 0 的整数")
TOO_MANY = Text("--{option}: {value} is beyond anything that exists (at most {most:g})", "--{option}：{value} 超出了现实范围（最多 {most:g}）")
NOT_DIVISIBLE = Text("--hidden {hidden} cannot be divided into --heads {heads}", "--hidden {hidden} 不能平分给 --heads {heads}")
NOT_GROUPED = Text("--heads {heads} cannot be grouped into --kv-heads {keys}", "--heads {heads} 不能平分成 --kv-heads {keys} 组")
NEEDS = Text("{option} needs {other}", "{option} 需要同时给出 {other}")
UNKNOWN = Text("--{option}: {value!r} is not known. Known: {known}", "--{option}：不认识 {value!r}。可用的有：{known}")
INTERRUPTED = 130  # as a shell shows SIGINT
MOST_PARAMETERS = 1e15
MOST_SIZE = 10**8
FORMULA_OPTIONS = ("params", "config", "layers", "hidden", "heads", "kv_heads", "vocab", "seq", "batch", "optimizer", "precision",
                   "sharding", "lora", "qlora")
FORMULA_FLAGS = ("no_flash", "checkpointing", "dropout", "inference")


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option

    def add(*names: str, text: Text, **options: Any) -> None:
        parser.add_argument(*names, help=text.say(language), **options)
    parser.usage = ("traindx memory [OPTIONS] SCRIPT [ARGS...]\n"
                    "       traindx memory [OPTIONS] --params N | --config FILE | --layers N --hidden N ...")
    add("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, text=OPT_MODULE)
    add("--gpu", action="append", metavar="NAME|SIZE", text=OPT_GPU)
    add("--json", metavar="FILE", text=OPT_JSON)
    add("--html", metavar="FILE", text=OPT_HTML)
    add_language_option(parser, language)
    add("--measure", action="store_true", text=OPT_MEASURE)
    add("--quick", action="store_true", text=OPT_QUICK)
    add("--seconds", metavar="N", text=OPT_SECONDS)
    add("--ranks", metavar="N", text=OPT_RANKS)
    add("--params", metavar="N", text=OPT_PARAMS)
    add("--config", metavar="FILE", text=OPT_CONFIG)
    for name, text in OPT_SIZE.items():
        add(f"--{name}", metavar="N", text=text)
    add("--optimizer", metavar="NAME", text=OPT_OPTIMIZER)
    add("--precision", metavar="KIND", text=OPT_PRECISION)
    add("--sharding", metavar="KIND", text=OPT_SHARDING)
    add("--lora", metavar="RANK", text=OPT_LORA)
    add("--qlora", metavar="RANK", text=OPT_QLORA)
    for name, text in (("no-flash", OPT_NO_FLASH), ("checkpointing", OPT_CHECKPOINTING), ("dropout", OPT_DROPOUT), ("inference", OPT_INFERENCE)):
        add(f"--{name}", action="store_true", text=text)
    add("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, text=OPT_SCRIPT)


def run(options: argparse.Namespace) -> int:
    from traindx.cli.run import check_report_file
    from traindx.estimate.gpus import gpu_named
    language = language_from(options.lang)
    gpus = [gpu_named(words) for words in options.gpu or ()]
    for option, file in (("--json", options.json), ("--html", options.html)):
        check_report_file(option, file)
    try:
        account = _traced(options, gpus, language) if options.command or options.module else _by_formula(options, gpus)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
    _write(account, options, language)
    return 0


def _write(account: Account, options: argparse.Namespace, language: Language) -> None:
    from traindx.reporters import memory, memory_html
    from traindx.reporters.style import columns_of, style_for
    stream = sys.stderr if options.json == "-" else sys.stdout
    stream.write(memory.render(account, language, style_for(stream), columns_of(stream)))
    if options.json == "-":
        sys.stdout.write(memory.render_json(account, language, None))
    elif options.json:
        Path(options.json).write_text(memory.render_json(account, language), encoding="utf-8", errors="backslashreplace")
    if options.html:
        Path(options.html).write_text(memory_html.render(account, language), encoding="utf-8", errors="backslashreplace")


# -- the program ----------------------------------------------------------------------------------------------------------

def _traced(options: argparse.Namespace, gpus: Sequence[Gpu], language: Language) -> Account:
    from traindx.cli.run import target_from
    from traindx.core.trials import Program
    from traindx.estimate.answering import account_of
    target = target_from(options)
    given = [name for name in (*FORMULA_OPTIONS, *FORMULA_FLAGS) if getattr(options, name)]
    if given:
        raise UsageError(BOTH_ASKED.fill(option="--" + given[0].replace("_", "-"), script=target.shown))
    seconds = _number("seconds", options.seconds, 1e6) if options.seconds else 120.0
    ranks = _whole("ranks", options.ranks) or 8
    return account_of(Program(target.script, target.module, target.args, str(Path.cwd())), target.shown, gpus, remedies=not options.quick,
                      measure=options.measure, ranks=ranks, seconds=seconds, progress=_progress(language))


def _progress(language: Language) -> Any:
    """A line on stderr that is written over, on a terminal only."""
    if not sys.stderr.isatty():
        return lambda text: None

    def show(text: Text) -> None:
        sys.stderr.write(f"\r\x1b[K{messages.SAYS.fill(what=text).say(language)} ...")
        sys.stderr.flush()
    return show


# -- the formula ----------------------------------------------------------------------------------------------------------

def _by_formula(options: argparse.Namespace, gpus: Sequence[Gpu]) -> Account:
    from traindx.core.text import number, same
    from traindx.estimate.formula import account_of
    request, remarks = request_from(options)
    account = account_of(request, gpus)
    account.remarks += remarks
    account.subject = same(options.config) if options.config else PARAMETERS.fill(count=number(request.states.parameters))
    if options.quick:
        account.remedies = []
    return account


def request_from(options: argparse.Namespace) -> tuple[Request, list[Text]]:
    """What the options ask, and what must be said about it. Raises UsageError for what cannot be."""
    from traindx.estimate.bill import OPTIMIZERS, PRECISIONS, SHARDINGS, States
    from traindx.estimate.formula import Request
    from traindx.estimate.shapes import lora_of, parameters_of
    shape, remarks = _shape(options)
    if options.params:
        parameters = _number("params", options.params, MOST_PARAMETERS)
    elif shape is not None:
        parameters = float(parameters_of(shape))
    else:
        raise UsageError(NOTHING_ASKED)
    optimizer, precision = _one_of("optimizer", options.optimizer, OPTIMIZERS), _one_of("precision", options.precision, PRECISIONS)
    sharding = _one_of("sharding", options.sharding, SHARDINGS)
    ranks = _whole("ranks", options.ranks)
    if sharding not in (None, "none") and not ranks:
        raise UsageError(NEEDS.fill(option="--sharding", other="--ranks"))
    rank = _whole("qlora", options.qlora) or _whole("lora", options.lora)
    if rank and shape is None:
        raise UsageError(NEEDS.fill(option="--qlora" if options.qlora else "--lora", other="--config / --layers, --hidden"))
    states = States(parameters, precision or "half", optimizer or "adamw", sharding or ("zero3" if ranks and ranks > 1 else "none"), ranks or 1,
                    lora_of(shape, rank) if rank and shape else None, bool(options.qlora), **_divided(shape))
    return Request(states, shape, _work(options, states.precision), options.inference), remarks


def _divided(shape: Shape | None) -> dict[str, Any]:
    from traindx.estimate.shapes import embeddings_of, layer_of
    if shape is None:
        return {}
    return {"not_matrices": float(embeddings_of(shape)), "largest": float(max(layer_of(shape), embeddings_of(shape)))}


def _shape(options: argparse.Namespace) -> tuple[Shape | None, list[Text]]:
    from traindx.estimate.configs import UNKNOWN_ARCHITECTURE, config_from
    from traindx.estimate.shapes import Shape
    if options.config:
        config = config_from(Path(options.config))
        guessed = UNKNOWN_ARCHITECTURE.fill(kind=config.kind, layers=config.shape.layers, hidden=config.shape.hidden)
        return config.shape, [] if config.known else [guessed]
    sizes = {name: _whole(name.replace("_", "-"), getattr(options, name)) for name in ("layers", "hidden", "heads", "kv_heads", "vocab")}
    if not sizes["layers"] or not sizes["hidden"]:
        if sizes["layers"] or sizes["hidden"]:
            one, other = ("--layers", "--hidden") if sizes["layers"] else ("--hidden", "--layers")
            raise UsageError(NEEDS.fill(option=one, other=other))
        return None, []
    heads = sizes["heads"] or max(1, sizes["hidden"] // 64)
    if options.heads and sizes["hidden"] % heads:
        raise UsageError(NOT_DIVISIBLE.fill(hidden=sizes["hidden"], heads=heads))
    if sizes["kv_heads"] and heads % sizes["kv_heads"]:
        raise UsageError(NOT_GROUPED.fill(heads=heads, keys=sizes["kv_heads"]))
    return Shape(sizes["layers"], sizes["hidden"], heads, sizes["vocab"] or 0, kv_heads=sizes["kv_heads"]), []


def _work(options: argparse.Namespace, precision: str) -> Work | None:
    from traindx.estimate.shapes import Work
    batch, length = _whole("batch", options.batch), _whole("seq", options.seq)
    if not batch and not length:
        return None
    if not length:
        raise UsageError(NEEDS.fill(option="--batch", other="--seq"))
    return Work(batch or 1, length, 4 if precision == "fp32" else 2, not options.no_flash, options.dropout, options.checkpointing)


def _one_of(option: str, value: str | None, known: Any) -> Any:
    if value is not None and value not in known:
        raise UsageError(UNKNOWN.fill(option=option, value=value, known=", ".join(known)))
    return value


def _number(option: str, words: str, most: float) -> float:
    from traindx.estimate.gpus import size_of
    scaled = words.strip().upper().replace("B", "G") if option == "params" else words
    try:
        value = float(words)
    except ValueError:
        value = size_of(scaled) if option == "params" else None  # type: ignore[assignment]
    if value is None or not math.isfinite(value) or value <= 0:
        raise UsageError(NOT_A_NUMBER.fill(option=option, value=words, hint=LIKE if option == "params" else Text("", "")))
    if value > most:
        raise UsageError(TOO_MANY.fill(option=option, value=words, most=most))
    return value


def _whole(option: str, words: str | None) -> int | None:
    if words is None:
        return None
    if not (words.isascii() and words.isdigit() and int(words)):
        raise UsageError(NOT_WHOLE.fill(option=option, value=words))
    if int(words) > MOST_SIZE:
        raise UsageError(TOO_MANY.fill(option=option, value=words, most=MOST_SIZE))
    return int(words)
