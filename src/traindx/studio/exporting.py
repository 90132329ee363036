"""The studio as one file that needs no server: every state of every lab computed, in both languages, packed into the page."""
from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from traindx.core.text import Language, Text
from traindx.studio import describing
from traindx.studio.workers import context

MOST_BYTES = 8 * 2**20
DIGITS = 4  # significant, of every computed number
CHUNK = 16  # states that one process computes at once
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
LABS = Text("labs: {done} of {all} state{all:|s}", "动手实验：{done} / {all} 个状态")
LEAVES = Text("tree: {done} of {all} leaves", "诊断树：{done} / {all} 片叶子")
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)
_IMPORT = re.compile(r'^import \{ (.*?) \} from "\./(.*?)";$', re.MULTILINE)
Progress = Callable[[Text], None]


def chapter(language: Language, runs_dir: Path | None, run: str | None, progress: Progress, labs: Iterable[str] | None = None,
            rules: Iterable[str] | None = None) -> str:
    """The page. ``run``: one record to take along; ``labs`` and ``rules``: only these (default: all). Raises UsageError."""
    parts = {"catalogue": describing.catalogue(), "rules": _rules(), **_record(runs_dir, run)}
    chosen = [lab for lab in parts["catalogue"]["labs"] if labs is None or lab["name"] in labs]
    parts["catalogue"]["labs"] = chosen
    parts |= {f"lab-{name}": outcomes for name, outcomes in _outcomes([lab["name"] for lab in chosen], progress)}
    parts["leaves"] = _leaves(rules, progress)
    return page(language, {name: packed(dumped(part)) for name, part in parts.items()})


def _rules() -> dict[str, Any]:
    from traindx.core.rules import all_rules
    return {name: describing.rule_page(rule) for name, rule in all_rules().items()}


def _record(runs_dir: Path | None, run: str | None) -> dict[str, Any]:
    if runs_dir is None or run is None:
        return {}
    from traindx.runs.reading import find
    from traindx.studio import records
    name = find(runs_dir, run).name
    listed = records.listing(runs_dir)
    listed["runs"] = [row for row in listed["runs"] if row["run"] == name]
    found = records.page(runs_dir, name)
    return {"record": {"list": listed, "runs": {name: {**found, "pages": []}}, "checklists": {name: records.checklist(runs_dir, name)}}}


# -- what is computed -----------------------------------------------------------------------------------------------------

def _outcomes(names: list[str], progress: Progress) -> Iterator[tuple[str, list[Any]]]:
    """Of each lab the outcomes of all its states, in their order, by as many processes as there are cores."""
    from traindx.labs import all_labs
    counts = {name: sum(1 for _ in all_labs()[name].states()) for name in names}
    done = 0
    with ProcessPoolExecutor(mp_context=context()) as pool:
        work = {name: [pool.submit(states_of, name, first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
                for name, count in counts.items()}
        for name, parts in work.items():
            outcomes: list[Any] = []
            for part in parts:
                outcomes += json.loads(part.result())
                progress(LABS.fill(done=done + len(outcomes), all=sum(counts.values())))
            done += len(outcomes)
            yield name, outcomes


def states_of(name: str, first: int, last: int) -> str:
    """The outcomes of a lab's states first .. last - 1, as JSON."""
    from itertools import islice

    from traindx.labs import all_labs
    lab = all_labs()[name]
    return dumped([describing.outcome(lab.compute(state)) for state in islice(lab.states(), first, last)])


def _leaves(rules: Iterable[str] | None, progress: Progress) -> dict[str, Any]:
    from traindx.toys import Toys
    from traindx.tree import all_leaves
    wanted = [leaf.rule for leaf in all_leaves()] if rules is None else list(rules)
    found = {}
    with Toys() as toys:
        for rule in wanted:
            found[rule] = describing.leaf(toys, rule, 0, lambda: False)
            progress(LEAVES.fill(done=len(found), all=len(wanted)))
    return found


# -- how it is packed -----------------------------------------------------------------------------------------------------

def dumped(value: Any) -> str:
    return json.dumps(_short(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _short(value: Any) -> Any:
    """Every number to DIGITS significant digits; a whole one without its ".0"."""
    if isinstance(value, float):
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, (list, tuple)) else value


def packed(text: str) -> str:
    """Deflated and in letters, as static.js unpacks it."""
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode()


def page(language: Language, parts: dict[str, str]) -> str:
    from traindx.studio.server import STATIC, index_page, plotly_file
    parts = {**parts, "plotly": packed(plotly_file().read_text(encoding="utf-8"))}
    data = "".join(f'<script type="text/plain" id="data-{name}">{part}</script>\n' for name, part in parts.items())
    html = index_page(language)
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    html = html.replace('<link rel="stylesheet" href="static/style.css">', f"<style>\n{style}</style>")
    html = html.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">')
    html = html.replace('<script type="module" src="static/app.js"></script>\n', "")
    return html.replace("</body>", f"{data}<script>\n{bundle()}</script>\n</body>")


def bundle() -> str:
    """The page's modules as one script: each in a function of its own, static.js in the place of socket.js."""
    from traindx.studio.server import SCRIPTS, STATIC
    files = {name: (STATIC / name.replace("socket", "static")).read_text(encoding="utf-8") for name in SCRIPTS}
    return '"use strict";\nconst modules = {};\n' + "".join(_module(name, text) for name, text in files.items())


def _module(name: str, text: str) -> str:
    names = ", ".join(_EXPORT.findall(text))
    body = _IMPORT.sub(lambda found: f'const {{ {found[1].replace(" as ", ": ")} }} = modules["{found[2]}"];', text)
    body = re.sub(r"^export ", "", body, flags=re.MULTILINE)
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {names} }};\n}})();\n'
