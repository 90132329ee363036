"""``traindx ask``: from a symptom to its possible causes, by questions in the terminal."""
from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, TypeVar

from traindx import messages
from traindx.core.text import Language, Text, language_from

if TYPE_CHECKING:
    from traindx.tree import Leaf

ABOUT = Text("from a symptom to its possible causes, by questions", "从症状出发，一问一答找病因")
DETAILS = Text("Asks what you see, then where it may come from, and shows for each cause what it looks like and which experiment "
               "would prove it. With a SCRIPT it offers to run that experiment.",
               "先问你看到了什么，再问可能出在哪里；每个病因都说明是什么样子、哪个对照实验能证实它。给出 SCRIPT，就可以当场跑这个实验。")
OPT_SCRIPT = Text("the training script, then its own arguments", "训练脚本，后面是它自己的参数")
OPT_JSON = Text("the whole tree as JSON on stdout", "把整棵树以 JSON 输出到 stdout")
WHAT = Text("What do you see?", "你看到的是什么？")
WHERE = Text("Which question would you answer with “maybe”?", "哪个问题你不敢说「肯定没问题」？")
WHICH = Text("Which of these looks like yours?", "哪一个最像你的情况？")
CHOOSE = Text("number (empty: back, q: quit): ", "输入编号（直接回车：返回，q：退出）：")
NOT_ONE = Text("a number from 1 to {last}, please", "请输入 1 到 {last} 之间的数字")
SEE = Text("You see: ", "你会看到：")
PROVES = Text("Experiment: {title}", "对照实验：{title}")
NO_EXPERIMENT = Text("No experiment for this one; read: traindx explain {rule}", "这一条没有对照实验，请看：traindx explain {rule}")
COMMAND = Text("Run it: traindx exam --finding {rule} {script}", "运行它：traindx exam --finding {rule} {script}")
OFFER = Text("Run it now? [y/N] ", "现在就跑吗？[y/N] ")
Choice = TypeVar("Choice")


class Left(Exception):
    """The reader has quit."""


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    parser.usage = "traindx ask [OPTIONS] [SCRIPT [ARGS...]]"
    parser.add_argument("--json", action="store_true", help=OPT_JSON.say(language))
    add_language_option(parser, language)
    parser.add_argument("command", metavar="SCRIPT ...", nargs=argparse.REMAINDER, help=OPT_SCRIPT.say(language))


def run(options: argparse.Namespace) -> int:
    language = language_from(options.lang)
    if options.json:
        sys.stdout.write(json.dumps(as_json(language), ensure_ascii=False, indent=1) + "\n")
        return 0
    try:
        return _ask(options.command, language)
    except (Left, EOFError, KeyboardInterrupt):
        print()
        return 0


def as_json(language: Language) -> list[dict[str, object]]:
    """The tree: symptoms, their questions, their causes."""
    from traindx.tree import SYMPTOMS, questions_of
    return [{"symptom": symptom.name, "text": symptom.text.say(language), "questions": [
        {"family": question.family, "step": question.step, "text": question.text.say(language), "causes": [
            {"rule": leaf.rule, "title": leaf.title.say(language), "see": leaf.see.say(language),
             "experiment": leaf.experiment.say(language) if leaf.experiment else None} for leaf in question.leaves]}
        for question in questions_of(symptom)]} for symptom in SYMPTOMS]


def _ask(command: list[str], language: Language) -> int:
    from traindx.tree import SYMPTOMS, questions_of
    while True:
        symptom = _choose(WHAT, [(symptom.text, symptom) for symptom in SYMPTOMS], language)
        if symptom is None:
            return 0
        while (question := _choose(WHERE, [(q.text, q) for q in questions_of(symptom)], language)) is not None:
            while (leaf := _choose(WHICH, [(leaf.title, leaf) for leaf in question.leaves], language)) is not None:
                if (status := _show(leaf, command, language)) is not None:
                    return status


def _choose(title: Text, choices: list[tuple[Text, Choice]], language: Language) -> Choice | None:
    """None: back. Raises Left, or EOFError at the end of the input."""
    print(f"\n{title.say(language)}")
    for number, (text, _) in enumerate(choices, 1):
        print(f"  {number:2d}  {text.say(language)}")
    while True:
        answer = input(CHOOSE.say(language)).strip().lower()
        if answer in ("q", "quit"):
            raise Left
        if not answer:
            return None
        if answer.isdecimal() and 1 <= int(answer) <= len(choices):
            return choices[int(answer) - 1][1]
        print(NOT_ONE.fill(last=len(choices)).say(language))


def _show(leaf: Leaf, command: list[str], language: Language) -> int | None:
    """The page of a cause; the exit status of its experiment where that was run."""
    from traindx.reporters.layout import wrap
    from traindx.reporters.style import columns_of
    print(f"\n{leaf.rule}{messages.COLON.say(language)}{leaf.title.say(language)}")
    for line in wrap(" ".join(leaf.see.say(language).split()), columns_of(sys.stdout), "  " + SEE.say(language)):
        print(line)
    if leaf.experiment is None:
        print("  " + NO_EXPERIMENT.fill(rule=leaf.rule).say(language))
        return None
    print("  " + PROVES.fill(title=leaf.experiment).say(language))
    print("  " + COMMAND.fill(rule=leaf.rule, script=" ".join(command) or "SCRIPT").say(language))
    if command and input("  " + OFFER.say(language)).strip().lower() in ("y", "yes"):
        from traindx.cli import main
        return main(["exam", "--lang", language, "--finding", leaf.rule, *command])
    return None
