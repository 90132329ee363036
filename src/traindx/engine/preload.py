"""What the server loads before it forks: torch, and those well-known libraries that the program itself imports."""
from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from traindx.core.trials import Program

ALWAYS = ("torch", "torch._dynamo")  # the latter is imported by the first step of any optimizer
# loading them has no effect that a program could notice: no threads, no devices, no files
KNOWN = frozenset(("accelerate", "datasets", "einops", "ignite", "lightning", "matplotlib", "numpy", "omegaconf", "pandas", "peft", "PIL",
                   "pytorch_lightning", "safetensors", "scipy", "seaborn", "skimage", "sklearn", "skorch", "timm", "tokenizers", "torch",
                   "torchaudio", "torchmetrics", "torchvision", "tqdm", "transformers", "yaml"))
MOST_FILES = 40
_OURS = ("perform", "probes", "interventions", "gauges")  # what the performer would import in each child


def ours() -> tuple[str, ...]:
    """Our own modules that take part in a trial."""
    package = Path(__file__).parents[1]
    files = [file.relative_to(package) for part in _OURS for file in sorted((package / part).rglob("*.py"))]
    return tuple(".".join(("traindx", *file.with_suffix("").parts)).removesuffix(".__init__") for file in files)


def wanted_by(program: Program) -> tuple[str, ...]:
    """Names for :func:`traindx.engine.server.load`, in the order in which the program has them."""
    found = dict.fromkeys(ALWAYS)
    for file in _files(program):
        found.update(dict.fromkeys(imports_in(file)))
    return tuple(found)


def _files(program: Program) -> Iterator[Path]:
    """The script, and the Python files beside it."""
    folder = Path(program.cwd)
    if program.script is not None:
        script = folder / program.script
        folder = script if script.is_dir() else script.parent
        if script.is_file():
            yield script
    with os.scandir(folder) if folder.is_dir() else os.scandir(".") as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(".py") and entry.is_file())
    yield from (folder / name for name in names[:MOST_FILES])


def imports_in(file: Path) -> Iterator[str]:
    """``module`` or ``module:name`` of the known libraries that a file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_known(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and _is_known(node.module):
            yield from (f"{node.module}:{alias.name}" for alias in node.names if alias.name != "*")


def _is_known(name: str) -> bool:
    return name.partition(".")[0] in KNOWN
