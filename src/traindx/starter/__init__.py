"""``traindx new``: a small training that does everything on the default table, to begin from instead of an empty file."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traindx.core.text import Language

TEMPLATES = Path(__file__).parent / "templates"
KINDS = ("tabular", "image", "text", "regression")
SAME = ("train.py", "test_train.py")  # for every kind
LOCKED = ("torch", "numpy", "scikit-learn", "pytest")


def files(kind: str, name: str, language: Language) -> Iterator[tuple[str, str]]:
    """``(file name, content)`` of a project."""
    for file in SAME:
        yield file, (TEMPLATES / f"{file}.template").read_text(encoding="utf-8")
    yield "data.py", (TEMPLATES / f"data_{kind}.py.template").read_text(encoding="utf-8")
    model = "mlp" if kind in ("tabular", "regression") else kind
    yield "model.py", (TEMPLATES / f"model_{model}.py.template").read_text(encoding="utf-8")
    yield "README.md", (TEMPLATES / f"README.{language}.md.template").read_text(encoding="utf-8").replace("@@NAME@@", name)
    yield "requirements.txt", "".join(f"{package}=={version}\n" for package, version in _installed())
    yield ".gitignore", "runs/\nout/\n__pycache__/\n"


def _installed() -> Iterator[tuple[str, str]]:
    """The versions that the project begins with, without the build (``+cpu``): other machines need another."""
    from importlib import metadata
    for package in LOCKED:
        try:
            yield package, metadata.version(package).split("+")[0]
        except metadata.PackageNotFoundError:
            continue


def write(folder: Path, kind: str, language: Language) -> list[Path]:
    """The project's files, written. Raises OSError, FileExistsError where the folder holds something already."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(folder)
    made = []
    for name, content in files(kind, folder.resolve().name, language):
        (folder / name).write_text(content, encoding="utf-8")
        made.append(folder / name)
    return made
