"""``traindx runs reproduce``: the code of a record in a scratch folder, run again with its arguments; the curves step by step.

The user's repository is only read (objects are shared with a clone), the user's files are only copied.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.core.amounts import binary_size
from traindx.core.secrets import MASK
from traindx.core.text import Language, Text
from traindx.errors import UsageError
from traindx.reporters.layout import printable
from traindx.runs import comparing, words
from traindx.runs.code import git
from traindx.runs.comparing import mapping, rows_of
from traindx.runs.reading import Run, runs_in

COPIED = 256 * 2**20  # bytes of files outside git that are copied beside the code
SKIPPED = frozenset((".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache"))
NUMERIC = ("torch", "numpy", "scipy", "scikit-learn", "lightning", "pytorch-lightning", "transformers", "accelerate", "datasets", "tokenizers")
DIFFERENT = 1


@dataclass
class Scratch:
    """A folder in which the script can run. ``cwd`` corresponds to the record's; ``left_out`` are files that were not copied."""

    root: Path
    cwd: Path
    left_out: list[tuple[int, str]] = field(default_factory=list)


def repeat(run: Run, runs_dir: Path, language: Language, keep: bool = False, as_json: bool = False) -> int:
    """Runs it and says how the curves agree. Status 0 where they are identical, 1 where not."""
    check(run)
    with tempfile.TemporaryDirectory(prefix="traindx-repeat-", ignore_cleanup_errors=True) as folder:
        scratch = prepare(run, Path(folder) / "work", runs_dir)
        say = sys.stderr
        print(words.RUNNING_AGAIN.fill(run=run.name, folder=scratch.cwd).say(language), file=say, flush=True)
        for text in _warnings(run, scratch):
            print(text.say(language), file=say, flush=True)
        again = execute(run, scratch, runs_dir, language)
        if keep:
            kept = Path(tempfile.mkdtemp(prefix="traindx-kept-"))
            shutil.copytree(scratch.root, kept, dirs_exist_ok=True, symlinks=True)
            print(kept, file=say)
    found = compared(run, again)
    if as_json:
        print(json.dumps({**found, "run": run.name, "again": again.name, "reasons": [text.say(language) for text in found["reasons"]]},
                         ensure_ascii=False, indent=1, default=str))
    else:
        print("\n".join(text.say(language) for text in verdict(found)))
    return 0 if found["identical"] else DIFFERENT


def check(run: Run) -> None:
    """Raises UsageError for a record that lacks what is needed."""
    argv = run.fields.get("argv")
    if any(MASK in str(word) for word in (argv if isinstance(argv, list) else [])):
        raise UsageError(words.MASKED_ARGV.fill(run=run.name))
    code = mapping(run.record.get("code"))
    if code.get("diff_sha256") and code.get("kept") != "whole":
        raise UsageError(words.NO_CODE.fill(run=run.name, why=words.DIFF_CUT))


def prepare(run: Run, target: Path, runs_dir: Path) -> Scratch:
    """The commit with its diff, the files that git did not know, and beside them what the script may read."""
    code = mapping(run.record.get("code"))
    commit, root = code.get("commit"), code.get("root")
    cwd = Path(str(run.fields.get("cwd", ".")))
    base = Path(str(root)) if commit and root else cwd
    if commit:
        _check_out(run, str(commit), base, target)
    else:
        target.mkdir(parents=True)
    files = run.path / "code" / "files"
    if files.is_dir() and not files.is_symlink():
        shutil.copytree(files, target, dirs_exist_ok=True, symlinks=True,
                        ignore=lambda folder, names: ["elsewhere"] if Path(folder) == files else [])
    inner = target / os.path.relpath(cwd, base) if cwd.is_relative_to(base) else target
    inner.mkdir(parents=True, exist_ok=True)
    scratch = Scratch(target, inner)
    if base.is_dir():
        scratch.left_out = copy_data(base, target, {runs_dir.resolve(), *_outputs(run, cwd)})
    script = str(run.fields.get("script", ""))
    if not script.startswith("-m ") and not (inner / script).exists():
        raise UsageError(words.NO_CODE.fill(run=run.name, why=words.NO_SCRIPT))
    return scratch


def _check_out(run: Run, commit: str, root: Path, target: Path) -> None:
    if not (root / ".git").exists():
        raise UsageError(words.NO_CODE.fill(run=run.name, why=words.REPOSITORY_GONE.fill(root=root)))
    status, _, _ = git(root, "cat-file", "-e", f"{commit}^{{commit}}")
    if status != 0 or not commit.isalnum():
        raise UsageError(words.NO_CODE.fill(run=run.name, why=words.COMMIT_GONE.fill(commit=printable(commit[:12]), root=root)))
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder, command in ((target.parent, ("clone", "-q", "--shared", "--no-checkout", str(root), str(target))),
                            (target, ("checkout", "-q", "--detach", commit))):
        status, _, err = git(folder, *command)
        if status != 0:
            raise UsageError(words.NO_CODE.fill(run=run.name, why=err.decode("utf-8", "replace").strip()[:300]))
    patch = run.path / "code" / "diff.patch"
    if patch.is_file():
        status, _, err = git(target, "apply", "--whitespace=nowarn", str(patch.resolve()))
        if status != 0:
            error = err.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
            raise UsageError(words.NO_CODE.fill(run=run.name, why=words.DIFF_FAILED.fill(error=printable(error[0][:200]))))


def _outputs(run: Run, cwd: Path) -> set[Path]:
    """What the run itself wrote: a repetition must not find it lying there."""
    saved = mapping(run.record.get("checkpoints")).get("saved")
    return {(cwd / str(file.get("path"))).resolve() for file in rows_of(saved)}


def copy_data(base: Path, target: Path, skipped: set[Path]) -> list[tuple[int, str]]:
    """Copies files that are not there yet, the small ones first, up to a limit; returns those left out, the largest first."""
    missing = sorted(_missing(base, target, skipped))
    taken, left = 0, []
    for size, name in missing:
        if taken + size > COPIED:
            left.append((size, name))
            continue
        try:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(base / name, target / name)
            taken += size
        except OSError:
            left.append((size, name))
    return sorted(left, reverse=True)


def _missing(base: Path, target: Path, skipped: set[Path]) -> Iterator[tuple[int, str]]:
    for folder, names, files in os.walk(base):
        inside = Path(folder)
        names[:] = [name for name in names if name not in SKIPPED and (inside / name).resolve() not in skipped]
        for name in files:
            file = inside / name
            below = os.path.relpath(file, base)
            if file.is_file() and file.resolve() not in skipped and not (target / below).exists():
                yield file.stat().st_size, below


def _warnings(run: Run, scratch: Scratch) -> Iterator[Text]:
    if scratch.left_out:
        some = ", ".join(printable(name) for _, name in scratch.left_out[:3])
        size = binary_size(sum(size for size, _ in scratch.left_out))
        yield words.NOT_COPIED.fill(count=len(scratch.left_out), size=size, root=scratch.root, some=some)
    if mapping(run.record.get("code")).get("masked"):
        yield words.MASKED_CODE


def execute(run: Run, scratch: Scratch, runs_dir: Path, language: Language) -> Run:
    """Runs the script under ``traindx run``; the new run, recorded beside the old one."""
    before = set(runs_in(runs_dir))
    script = str(run.fields.get("script", ""))
    what = ["-m", script.removeprefix("-m ")] if script.startswith("-m ") else [script]
    name = f"{run.fields.get('name', 'run')}-again"
    argv = [str(word) for word in run.fields.get("argv", [])]
    command = [sys.executable, "-m", "traindx", "run", "--no-ask", "--lang", language, "--runs-dir", str(runs_dir.resolve()), "--name", name,
               *what, *argv]
    environment = dict(os.environ)
    for variable, value in mapping(run.environment.get("variables")).items():
        if variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG"):
            environment[variable] = str(value)
    subprocess.run(command, cwd=scratch.cwd, env=environment, stdout=sys.stderr, check=False)
    new = [path for path in runs_in(runs_dir) if path not in before and path.name.find("-again") > 0]
    if not new:
        raise UsageError(words.NOTHING_TO_COMPARE)
    return Run(new[-1])


# -- what came of it -----------------------------------------------------------------------------------------------------------------

def compared(run: Run, again: Run) -> dict[str, Any]:
    """``{identical, points, series, first_difference, reasons}``."""
    points, series = comparing.points_in_common(run.recording, again.recording)
    first = comparing.first_difference(run.recording.series, again.recording.series)
    reasons = list(likely(run, again)) if first else []
    return {"identical": points > 0 and first is None, "points": points, "series": series, "first_difference": first, "reasons": reasons}


def likely(run: Run, again: Run) -> Iterator[Text]:
    """Reasons why curves may differ, the strongest first."""
    unseeded = mapping(run.record.get("seeds")).get("unseeded")
    if isinstance(unseeded, list) and unseeded:
        yield words.REASON_SEED.fill(what=printable(", ".join(map(str, unseeded))))
    found = comparing.diff(run, again)
    packages = [f"{name} {a} -> {b}" for name, (a, b) in found["environment"].items() if name in NUMERIC]
    if packages:
        yield words.REASON_PACKAGES.fill(what=printable(", ".join(packages)))
    switches = [f"{name.removeprefix('torch ')} {a} -> {b}" for name, (a, b) in found["environment"].items() if name.startswith("torch ")]
    if switches:
        yield words.REASON_TORCH.fill(what=printable(", ".join(switches)))
    if "devices" in found["environment"]:
        yield words.REASON_DEVICE.fill(what=printable(" -> ".join(map(str, found["environment"]["devices"]))))
    data = [name for name in found["data"] if name != "first inputs"]
    if data:
        yield words.REASON_DATA.fill(what=printable(", ".join(data)))
    elif "first inputs" in found["data"]:
        yield words.REASON_INPUTS
    if mapping(run.record.get("torch")).get("devices"):
        yield words.REASON_CUDA
    if "PYTHONHASHSEED" not in mapping(run.environment.get("variables")):
        yield words.REASON_HASH


def verdict(found: Mapping[str, Any]) -> Iterator[Text]:
    from traindx.core.text import number, same
    first = found["first_difference"]
    if first is None:
        yield words.IDENTICAL.fill(**found) if found["identical"] else words.NOTHING_TO_COMPARE
        return
    yield words.DIFFERS.fill(step=first["step"], series=printable(first["series"]), a=number(first["a"], 9), b=number(first["b"], 9))
    yield words.REASONS
    for reason in found["reasons"] or [words.REASON_NONE]:
        yield same("  ") + reason
