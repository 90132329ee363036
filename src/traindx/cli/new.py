"""``traindx new NAME``: a starter project on the default table."""
from __future__ import annotations

import argparse
from pathlib import Path

from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError, reason

ABOUT = Text("a starter project: a small training that does everything right, with its tests", "新建一个起步项目：小而正确的训练脚本，带测试")
DETAILS = Text("Writes train.py, data.py, model.py, tests and a lock into a new folder. AdamW 3e-4, constant rate, no regularisation, "
               "ReLU with He initialisation, pre-LayerNorm residual blocks, seeds fixed, best and last checkpoints, resume. "
               "The data ship with scikit-learn.",
               "在新文件夹里写好 train.py、data.py、model.py、测试和锁文件。AdamW 3e-4、学习率恒定、不加正则、ReLU 配 He 初始化、前置 "
               "LayerNorm 的残差块、固定种子、保存最好和最后的检查点、可以续训。数据用 scikit-learn 自带的。")
OPT_KIND = Text("what kind of data (default: tabular)", "数据类型（默认 tabular）")
OPT_NAME = Text("the folder to make", "要新建的文件夹")
NOT_EMPTY = Text("{folder} exists and is not empty; nothing was written", "{folder} 已存在且不是空的；什么也没写")
CANNOT = Text("{folder} cannot be written: {problem}", "写不了 {folder}：{problem}")
DONE = Text("{folder} is ready:\n  cd {folder}\n"
            "  pytest                     its own tests\n"
            "  traindx run train.py       train it, watched and recorded",
            "{folder} 建好了：\n  cd {folder}\n"
            "  pytest                     跑它自带的测试\n"
            "  traindx run train.py       在观察下训练，并留下记录")


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    from traindx.starter import KINDS
    parser.add_argument("--kind", choices=KINDS, default="tabular", help=OPT_KIND.say(language))
    add_language_option(parser, language)
    parser.add_argument("name", metavar="NAME", help=OPT_NAME.say(language))


def run(options: argparse.Namespace) -> int:
    from traindx.starter import write
    language = language_from(options.lang)
    try:
        write(Path(options.name), options.kind, language)
    except FileExistsError:
        raise UsageError(NOT_EMPTY.fill(folder=options.name)) from None
    except OSError as problem:
        raise UsageError(CANNOT.fill(folder=options.name, problem=reason(problem))) from None
    print(DONE.fill(folder=options.name).say(language))
    return 0
