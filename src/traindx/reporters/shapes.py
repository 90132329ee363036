"""The shapes of a step as terminal text, as one HTML page and as JSON."""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

from traindx import __version__, messages
from traindx.core.observed import Site
from traindx.core.text import Language, Text, same
from traindx.reporters.html import both, page_of
from traindx.reporters.layout import cut, pad, printable, width, wrap
from traindx.reporters.style import Style
from traindx.signals.assertions import Assertion
from traindx.signals.shapes import Dim, Dims, Grid, Row, Shapes, cells, folded, names_on

TITLE = Text("traindx shapes: {script}", "traindx 形状：{script}")
STEP = Text("step {step}", "第 {step} 步")
BATCH = Text("Batch dimension", "batch 维")
KNOWN = Text("B = {size} (measured: the same step with {fewer} sample{fewer:|s} has these dimensions smaller)",
             "B = {size}（实测：同一步少喂样本，只喂 {fewer} 个，变小的就是这些维）")
UNKNOWN = Text("not told: {why}", "没有判定：{why}")
SINGLE = Text("One sample", "单样本")
PASSED = Text("the step also passes with a batch of 1 (measured, in a child process)", "batch 为 1 时这一步也能通过（实测，在子进程里）")
FAILED = Text("the step fails with a batch of 1: {why}", "batch 为 1 时这一步会报错：{why}")
NOT_TRIED = Text("not checked: {why}", "没查：{why}")
FEWER = Text("Fewer samples", "少一个样本")
FAILS_WITH = Text("the step fails with {samples} sample{samples:|s}: {error}. A size is written into the code; the last, smaller batch "
                  "will meet it.",
                  "只有 {samples} 个样本时这一步报错：{error}。代码里把某个大小写死了，最后那个不满的 batch 就会撞上。")
WHY = {
    "one sample only": Text("the batch holds one sample only", "batch 里只有一个样本"),
    "no dimension of the batch holds its samples": Text("no dimension of the batch holds its samples", "batch 里没有哪一维是样本数"),
    "one step only": Text("the script made one step only, the second is the one that is repeated", "脚本只走了一步，要重跑的是第二步"),
    "": Text("nothing got smaller when fewer samples were given", "少给样本之后，没有哪个形状变小"),
    "no model was given the smaller batch": Text("no model was given the smaller batch", "没有模型拿到变小的 batch"),
    "it failed": Text("the step failed with fewer samples", "样本变少之后，这一步报错"),
    "the program ended before its step did": Text("the program ended before the repeated step did", "重跑的那一步还没走完，程序就结束了"),
    "replays need fork on Linux": Text("repeating a step needs fork, on Linux", "重跑一步需要 Linux 上的 fork"),
    "the model is compiled": Text("the model is compiled", "模型用 torch.compile 编译过"),
    "the replay took too long or was ended": Text("the repeated step took too long", "重跑的那一步太慢"),
    "the replay took too long": Text("the repeated step took too long", "重跑的那一步太慢"),
    "the training is distributed": Text("several ranks train together", "训练用了多个进程"),
    "the program handles SIGCHLD": Text("the program listens to its child processes", "程序自己在监听子进程"),
    "the process is too large to fork": Text("the process is too large to fork", "进程太大，没法 fork"),
    "the process is the init of its container": Text("the process is the first of its container", "这个进程是容器里的 1 号进程"),
    "replays need all tensors on the CPU and in private memory": Text(
        "repeating a step needs all tensors on the CPU", "重跑一步要求所有张量都在 CPU 上"),
}
COMPILED = Text("torch.compile is in use: what happens inside is not seen op by op.", "用了 torch.compile：里面的运算逐个看不到。")
CUT = Text("The step has too many operations: the rest is left out.", "这一步运算太多，后面的省略了。")
MORE = Text("... {count} more row{count:|s} like these {period}, {times} time{times:|s}",
            "…… 与上面 {period} 行相同的又重复 {times} 次，共 {count} 行")
GRID = Text("{note}: every a meets every b ({rows} x {columns} shown)", "{note}：每个 a 都和每个 b 配对（只画出 {rows} × {columns}）")
LAYER = Text("Layer or operation", "层或运算")
INPUTS = Text("In", "输入")
OUTPUT = Text("Out", "输出")
NOTE = Text("Note", "说明")
GRIDS = Text("Silent broadcasts", "静默广播")
ASSERTIONS = Text("Assertions to paste", "可以粘贴的断言")
ROWS = Text("The step, line by line", "这一步，逐行看")
NONE = Text("no broadcast in which both sides grow", "没有两边同时变大的广播")

# begun so, with the program's own error in brackets
BEGUN = {
    "the step reaches outside the process": Text("the step reaches outside the process{rest}", "这一步要访问进程之外{rest}"),
    "the step cannot be repeated in a child": Text("the step cannot be repeated in a child{rest}", "这一步没法在子进程里重跑{rest}"),
    "not everything that holds samples could be made smaller": Text(
        "not everything that holds samples could be made smaller{rest}", "有些按样本排的东西没能一起变小{rest}"),
}


def reason(words: str) -> Text:
    """Why something is not known, as the probe says it."""
    for begun, text in BEGUN.items():
        if words.startswith(begun):
            return text.fill(rest=words[len(begun):])
    return WHY.get(words, same(words))


def head(shapes: Shapes) -> Iterator[tuple[Text, Text]]:
    """What is said above the rows: label and text."""
    batch = shapes.batch
    known = KNOWN.fill(size=batch.size, fewer=batch.fewer) if batch.fewer else UNKNOWN.fill(why=reason(batch.why))
    yield BATCH, known
    for trouble in shapes.troubles:
        if trouble.samples != 1:
            yield FEWER, FAILS_WITH.fill(samples=trouble.samples, error=_error(trouble.error, trouble.where))
    at = next((t.where for t in shapes.troubles if t.samples == 1), None)
    yield SINGLE, (PASSED if shapes.single == "passed" else FAILED.fill(why=_error(shapes.single_why, at))
                   if shapes.single == "failed" else NOT_TRIED.fill(why=reason(shapes.single_why)))


def _error(text: str, where: Site | None) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return f"{first} ({where.file}:{where.line})" if where else first


# -- terminal --


def render(shapes: Shapes, script: str, language: Language, style: Style, columns: int) -> str:
    title = f"── traindx shapes ── {script}{(messages.LIST_COMMA + STEP.fill(step=shapes.step)).say(language)} "
    lines = [style.strong(title + "─" * max(0, columns - width(title))), ""]
    labels = [(label.say(language), text.say(language)) for label, text in head(shapes)]
    room = max(width(label) for label, _ in labels)
    for label, text in labels:
        lines += wrap(printable(text), columns, pad(label, room) + "  ")
    for said in ([COMPILED] if shapes.compiled else []) + ([CUT] if shapes.cut else []):
        lines += wrap(said.say(language), columns)
    drawn: set[tuple[Site | None, Grid]] = set()
    before: Site | None = None
    for row in folded(shapes.rows):
        if not isinstance(row, Row):
            lines += _more(row, language, columns)
            continue
        if row.where != before:
            before = row.where
            lines += ["", style.strong(cut(_place(before), columns)), *_variables(shapes, before, style, columns)]
        lines += _line(row, columns)
        if row.grid and (row.where, row.grid) not in drawn:
            drawn.add((row.where, row.grid))
            lines += _grid(row.grid, row.note, language, style, columns)
    return "\n".join(lines) + "\n"


def _place(site: Site | None) -> str:
    return f"{site.file}:{site.line}  {site.code}" if site else "?"


def _variables(shapes: Shapes, site: Site | None, style: Style, columns: int) -> Iterator[str]:
    """The shapes of the variables that the line reads."""
    held = shapes.variables.get((site.file, site.line), {}) if site else {}
    words = [f"{name}: {sized(held[name][0])} {held[name][1]}" for name in (names_on(site) if site else ()) if name in held]
    if words:
        yield from (style.faint(line) for line in wrap(", ".join(words), columns, "  "))


def _line(row: Row, columns: int) -> Iterator[str]:
    text = f"{operands(row)} -> {row.op} -> {short(row.out)}"
    note = f"   {row.note}" if row.note else ""
    yield from wrap(printable(text + note), columns, f"    {row.module}  " if row.module else "    ", "        ")


def _more(fold: tuple[int, int], language: Language, columns: int) -> Iterator[str]:
    period, times = fold
    yield from wrap(MORE.fill(count=period * times, period=period, times=times).say(language), columns, "    ")


def _grid(grid: Grid, note: str, language: Language, style: Style, columns: int) -> Iterator[str]:
    rows, heads, inner = cells(grid)
    said = GRID.fill(note=note, rows=len(rows), columns=len(heads)).say(language)
    yield from (style.level(line, "warning") for line in wrap(said, columns, "      "))
    room = max(len(cell) for line in inner for cell in line) + 2
    yield "        " + " " * 4 + "".join(head.rjust(room) for head in heads)
    for name, line in zip(rows, inner):
        yield "        " + name.rjust(4) + "".join(cell.rjust(room) for cell in line)


def operands(row: Row) -> str:
    """``[B=32, d=8], [8] x 3``: equal ones that follow each other once."""
    counted = [(text, len(list(same))) for text, same in groupby(sized(dims) for dims in row.inputs)]
    return ", ".join(text if count == 1 else f"{text} x {count}" for text, count in counted) or "()"


def sized(dims: Dims) -> str:
    """``[B=32, d=64, 10]``"""
    return "[" + ", ".join(f"{dim.name}={dim.size}" if dim.name else str(dim.size) for dim in dims) + "]"


def short(dims: Dims) -> str:
    """``[B, 64, 10]``: only what follows the batch by name."""
    return "[" + ", ".join(dim.name if dim.name.startswith("B") else str(dim.size) for dim in dims) + "]"


# -- JSON --


def document(shapes: Shapes, script: str, assertions: Sequence[Assertion], text: str, language: Language) -> dict[str, Any]:
    return {
        "schema": 1, "traindx": __version__, "script": script, "step": shapes.step,
        "rows": [_row(row) for row in shapes.rows],
        "batch_dim": {"name": "B", "size": shapes.batch.size, "known": shapes.batch.fewer is not None, "how": shapes.batch.how,
                      "fewer": shapes.batch.fewer, "why": reason(shapes.batch.why).say(language) if shapes.batch.fewer is None else ""},
        "batch_of_one": {"verdict": shapes.single, "why": reason(shapes.single_why).say(language) if shapes.single != "passed" else ""},
        "troubles": [{"samples": t.samples, "error": t.error, "where": _where(t.where)} for t in shapes.troubles],
        "compiled": shapes.compiled, "cut": shapes.cut,
        "asserts": text, "assertions": [dataclasses.asdict(each) for each in assertions],
    }


def _row(row: Row) -> dict[str, Any]:
    grid = dataclasses.asdict(row.grid) if row.grid else None
    return {"where": _where(row.where), "op": row.op, "module": row.module, "in": _dims(row.inputs[0]) if row.inputs else [],
            "others": [_dims(dims) for dims in row.inputs[1:]], "out": _dims(row.out), "note": row.note, "grid": grid}


def _where(site: Site | None) -> dict[str, Any] | None:
    return dataclasses.asdict(site) if site else None


def _dims(dims: Iterable[Dim]) -> list[list[Any]]:
    return [[dim.name, dim.size] for dim in dims]


def dumps(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


# -- HTML --


def html(shapes: Shapes, script: str, text: str, language: Language) -> str:
    said = "".join(f"<dt>{both(label)}</dt><dd>{both(words)}</dd>" for label, words in head(shapes))
    remarks = "".join(f'<p class="remark">{both(each)}</p>' for each in
                      ([COMPILED] if shapes.compiled else []) + ([CUT] if shapes.cut else []))
    body = (f"<header><h1><b>traindx shapes</b> {escape(script)}</h1><p class=\"ended\">{both(STEP.fill(step=shapes.step))}</p></header>"
            f"<dl>{said}</dl>{remarks}{_html_grids(shapes)}{_html_rows(shapes)}"
            f"<h2>{both(ASSERTIONS)}</h2><pre>{''.join(f'<span>{escape(line)}</span>' for line in text.splitlines())}</pre>"
            f"<footer>traindx {__version__}</footer>")
    return page_of(TITLE.fill(script=script), body, language)


def _html_grids(shapes: Shapes) -> str:
    pictures = "".join(_html_grid(row) for row in dict.fromkeys((r.where, r.note, r.grid) for r in shapes.rows if r.grid))
    return f"<h2>{both(GRIDS)}</h2>" + (pictures or f'<p class="fine">{both(NONE)}</p>')


def _html_grid(found: tuple[Site | None, str, Grid | None]) -> str:
    site, note, grid = found
    if grid is None:
        return ""
    rows, heads, inner = cells(grid)
    said = both(GRID.fill(note=note, rows=len(rows), columns=len(heads)))
    top = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join(f"<tr><th>{name}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for name, line in zip(rows, inner))
    return (f'<article class="warning"><p class="place">{escape(_place(site))}</p><p>{said}</p>'
            f'<div class="scroll"><table style="width:auto"><tr><th></th>{top}</tr>{body}</table></div></article>')


def _html_rows(shapes: Shapes) -> str:
    lines = []
    for site, rows in groupby(shapes.rows, key=lambda row: row.where):
        lines.append(f'<tr><th colspan="4"><code>{escape(_place(site))}</code></th></tr>')
        lines += [f"<tr><td><code>{escape(row.module)}</code> {escape(row.op)}</td>"
                  f"<td><code>{escape(operands(row))}</code></td>"
                  f"<td><code>{escape(sized(row.out))}</code></td><td>{escape(row.note)}</td></tr>" for row in rows]
    heads = "".join(f"<th>{both(text)}</th>" for text in (LAYER, INPUTS, OUTPUT, NOTE))
    return f'<h2>{both(ROWS)}</h2><div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'

