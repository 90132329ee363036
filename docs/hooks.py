"""Makes the rule pages from the rules themselves: one page a rule and language, and a list of all."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from traindx.core.rules import Rule, all_pages
from traindx.core.text import Language

WORDS = {"en": ("Rules", "level", "step", "The fault, as a program", "Its healthy twin"),
         "zh": ("规则", "级别", "步骤", "带故障的程序", "改好之后的程序")}


ROOT = Path(__file__).parent.parent


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, "add-a-rule.md", content=(ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    for language in ("en", "zh"):
        files.append(File.generated(config, f"rules/index{suffix(language)}.md", content=index(language)))
        for rule in all_pages().values():
            files.append(File.generated(config, f"rules/{rule.name}{suffix(language)}.md", content=page(rule, language)))
    return files


def suffix(language: Language) -> str:
    return "" if language == "en" else f".{language}"


def index(language: Language) -> str:
    title, level, step, *_ = WORDS[language]
    rows = [f"| [{rule.name}]({rule.name}{suffix(language)}.md) | {rule.title.say(language)} | {rule.level} | {rule.step} |"
            for rule in all_pages().values()]
    return "\n".join([f"# {title}", "", f"| | | {level} | {step} |", "|---|---|---|---|", *rows, ""])


def page(rule: Rule, language: Language) -> str:
    _, level, step, bad, good = WORDS[language]
    parts = [f"# {rule.title.say(language)}", f"`{rule.name}` · {level}: {rule.level} · {step}: {rule.step} · `traindx {rule.judged_by}`"]
    for heading, text in rule.page(language).sections.items():
        parts += [f"## {heading}", as_markdown(text)]
    for heading, which in ((bad, "bad"), (good, "good")):
        parts += [f"## {heading}", f"```python\n{rule.source_of(which).strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def as_markdown(text: str) -> str:
    """Indented lines of a section are code."""
    out: list[str] = []
    code = False
    for line in text.splitlines():
        indented = line.startswith("    ")
        if indented != code and line.strip():
            out.append("```python" if indented else "```")
            code = indented
        out.append(line.removeprefix("    ") if code else line.replace("``", "`"))
    return "\n".join([*out, *(["```"] if code else [])])
