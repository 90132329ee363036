"""Which code ran: the commit, what differs from it, and imported files that git does not know.

git is only asked, never told: no index is written, no hook or external diff of the repository is run by these commands.
"""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.core.secrets import masked_text

DIFF_BYTES = 8 * 2**20  # of a diff that are kept
FILE_BYTES = 2**20  # of one file
FILES_BYTES = 8 * 2**20  # of all files together
SECONDS = 20.0
NO_GIT, NO_REPOSITORY, NO_COMMIT = "git is not installed", "not a git repository", "the repository has no commit yet"
SOURCES = ("*.py", "*.yaml", "*.yml", "*.toml", "*.json", "*.cfg", "*.ini", "*.sh")  # kept of a diff that is too big


@dataclass
class Code:
    """``why`` says why there is no commit. ``kept`` of a diff: whole, sources (the rest was too big), none. ``files`` are those
    copied, as ``{path in the record: where it was}``."""

    root: str | None = None
    commit: str | None = None
    branch: str | None = None
    detached: bool = False
    dirty: bool = False
    diff_sha256: str | None = None
    diff_bytes: int = 0
    kept: str = "none"
    masked: bool = False
    submodules: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    why: str | None = None


def snapshot(folder: Path, record: Path) -> Code:
    """The state of the repository around ``folder``; its diff goes to ``record/code/diff.patch``."""
    if shutil.which("git") is None:
        return Code(why=NO_GIT)
    status, out, err = git(folder, "rev-parse", "--show-toplevel")
    if status != 0:
        said = (err.decode("utf-8", "replace").strip().splitlines() or [NO_REPOSITORY])[0][:300]
        return Code(why=NO_REPOSITORY if NO_REPOSITORY in said else said)
    root = Path(os.fsdecode(out).rstrip("\n"))
    code = Code(root=str(root))
    status, out, _ = git(root, "rev-parse", "--verify", "-q", "HEAD")
    code.commit = out.decode().strip() if status == 0 else None
    status, out, _ = git(root, "symbolic-ref", "--short", "-q", "HEAD")
    code.branch = os.fsdecode(out).strip() if status == 0 else None
    code.detached = code.branch is None
    if code.commit is None:
        code.why, code.dirty = NO_COMMIT, True
        return code
    code.submodules = _submodules(root)
    _keep_diff(code, root, record / "code")
    return code


def git(folder: Path, *words: str, limit: int | None = None) -> tuple[int, bytes, bytes]:
    """``git WORDS`` in ``folder``: exit status, stdout (cut at ``limit`` bytes), stderr. 124 where it took too long."""
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotepath=off", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, env=environment, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 124, b"", b"git did not answer"
    except OSError as problem:
        return 127, b"", str(problem).encode()
    return done.returncode, done.stdout[:limit] if limit else done.stdout, done.stderr


def _keep_diff(code: Code, root: Path, where: Path) -> None:
    """The whole diff; of a huge one that of its sources; its size and sha256 in any case."""
    options = ("diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    digest, size, kept = _stream(root, options)
    code.dirty = size > 0
    if not size:
        return
    code.diff_sha256, code.diff_bytes, code.kept = digest, size, "whole"
    if kept is None:
        _, _, kept = _stream(root, (*(word for word in options if word != "--binary"), "--", *SOURCES))
        code.kept = "none" if kept is None else "sources"
    if kept is not None:
        where.mkdir(parents=True, exist_ok=True)
        clean = _masked(kept)
        code.masked = clean != kept
        (where / "diff.patch").write_bytes(clean)


def _stream(root: Path, words: Sequence[str]) -> tuple[str, int, bytes | None]:
    """Digest and size of what git says, and the bytes themselves unless they are too many: never more in memory than is kept."""
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotepath=off", "-C", str(root), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment) as child:
        assert child.stdout is not None
        while part := child.stdout.read(2**20):
            digest.update(part)
            size += len(part)
            if size <= DIFF_BYTES:
                kept += part
    return digest.hexdigest(), size, bytes(kept) if size <= DIFF_BYTES else None


def _masked(diff: bytes) -> bytes:
    """Line by line; bytes that are no UTF-8 stay as they are."""
    text = diff.decode("utf-8", "surrogateescape")
    if "GIT binary patch" in text:
        lines, binary = [], False
        for line in text.split("\n"):
            binary = (binary or line.startswith("GIT binary patch")) and not line.startswith("diff --git")
            lines.append(line if binary else masked_text(line))
        text = "\n".join(lines)
    else:
        text = "\n".join(masked_text(line) for line in text.split("\n"))
    return text.encode("utf-8", "surrogateescape")


def _submodules(root: Path) -> list[dict[str, Any]]:
    if not (root / ".gitmodules").is_file():
        return []
    status, out, _ = git(root, "submodule", "status")
    rows = []
    for line in out.decode("utf-8", "replace").splitlines() if status == 0 else ():
        mark, rest = line[:1], line[1:].split(" (")[0]
        commit, _, path = rest.partition(" ")
        inside, _, _ = git(root / path, "diff", "--quiet", "HEAD", "--no-ext-diff")
        rows.append({"path": path, "commit": commit, "moved": mark == "+", "absent": mark == "-", "dirty": mark != "-" and inside == 1})
    return rows


# -- files that git does not know --------------------------------------------------------------------------------------------------

def keep_files(code: Code, files: Sequence[str], base: Path, record: Path) -> None:
    """Copies what was imported and cannot be had from the commit and the diff: untracked, ignored, in no repository at all.

    Paths below ``base`` (the repository, else where the script ran) are kept relative to it.
    """
    known = _tracked(Path(code.root), files) if code.root and code.commit else set()
    taken = sum((record / "code" / "files" / name).stat().st_size for name in code.files if (record / "code" / "files" / name).exists())
    copied = set(code.files.values())
    for file in files:
        if os.path.realpath(file) in known or file in copied:
            continue
        name = _name_for(Path(file), base)
        try:
            size = os.path.getsize(file)
            if size > FILE_BYTES or taken + size > FILES_BYTES:
                code.left_out.append(file)
                continue
            target = record / "code" / "files" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            text = Path(file).read_bytes().decode("utf-8", "surrogateescape")
            clean = masked_text(text)
            code.masked = code.masked or clean != text
            target.write_bytes(clean.encode("utf-8", "surrogateescape"))
        except OSError:
            code.left_out.append(file)
            continue
        code.files[name] = file
        taken += size


def _name_for(file: Path, base: Path) -> str:
    try:
        return file.relative_to(os.path.realpath(base)).as_posix()
    except ValueError:
        return f"elsewhere/{hashlib.sha256(str(file.parent).encode()).hexdigest()[:8]}/{file.name}"


def _tracked(root: Path, files: Sequence[str]) -> set[str]:
    """Those of ``files`` that are in the repository's index: the commit and the diff hold them."""
    inside = [file for file in files if file.startswith(os.path.realpath(root) + os.sep)]
    found: set[str] = set()
    for start in range(0, len(inside), 200):
        part = [os.path.relpath(file, os.path.realpath(root)) for file in inside[start:start + 200]]
        _, out, _ = git(root, "--literal-pathspecs", "ls-files", "-z", "--", *part)
        found.update(os.path.join(os.path.realpath(root), os.fsdecode(name)) for name in out.split(b"\0") if name)
    return found
