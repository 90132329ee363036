"""The shape of the code, held by tests: imports point towards core, torch stays where it belongs, start-up is quick."""
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "traindx"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name not in ("bad.py", "good.py"))
TORCH_ALLOWED = ("probes", "interventions", "gauges", "perform", "estimate", "experiments", "labs")
NUMPY_ALLOWED = ("samples",)  # and no torch
# what each part may import of traindx; parts that are not named may import anything
MAY_IMPORT = {
    "core": {"core", "rules"},  # rules only by discovery, inside a function
    "signals": {"core", "signals"},
    "rules": {"core", "signals"},
    "probes": {"core", "probes"},
    "boot": {"core", "probes", "boot"},
    "figures": {"core", "figures", "signals"},
    "labs": {"core", "signals", "figures", "labs", "estimate", "tree", "rules"},
    "reporters": {"core", "signals", "figures", "reporters", "messages", "__version__"},
}


def imports_of(path: Path) -> list[tuple[str, ast.AST]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(f"{node.module}.{alias.name}" if node.module == "traindx" else node.module, node) for alias in node.names]
    return found


def part_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_towards_core(path):
    part = part_of(path)
    for name, _ in imports_of(path):
        if name.split(".")[0] in ("torch", "numpy"):
            assert part in TORCH_ALLOWED or (name.startswith("numpy") and part in NUMPY_ALLOWED), f"{path}: imports {name}"
        if name.startswith("traindx.") and part in MAY_IMPORT:
            assert name.split(".")[1] in MAY_IMPORT[part], f"{path}: {part} imports {name}"


def test_core_is_standard_library_only():
    for path in (SOURCE / "core").rglob("*.py"):
        for name, _ in imports_of(path):
            top = name.split(".")[0]
            assert top in sys.stdlib_module_names or top == "traindx", f"{path}: {name}"


@pytest.mark.parametrize("statement", ["import traindx", "import traindx.cli", "import traindx.core.judge; traindx.core.judge.all_rules()"])
def test_torch_is_not_imported(statement):
    code = f"{statement}\nimport sys\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert True


def test_no_import_cycles():
    graph = {}
    for path in MODULES:
        name = "traindx." + ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        graph[name] = {module for module, node in imports_of(path) if module.startswith("traindx") and node.col_offset == 0} - {name}
    done: set[str] = set()

    def visit(name, trail):
        assert name not in trail, " -> ".join([*trail, name])
        if name in done:
            return
        for other in graph.get(name, ()):
            visit(other, [*trail, name])
        done.add(name)
    for name in graph:
        visit(name, [])
    assert done >= set(graph)
