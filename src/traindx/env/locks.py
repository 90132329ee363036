"""Lock files against what is installed: requirements pins, uv.lock, poetry.lock, pylock.toml, a conda environment.yml."""
from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from traindx.env.facts import Drift, Lock

CONDA_NAMES = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch", "matplotlib-base": "matplotlib", "pillow-simd": "pillow"}
PLAIN = ("requirements.lock", "requirements.txt")


@dataclass(frozen=True)
class Pin:
    """A package as locked. ``required``: an installation without it is not the locked one. ``versions`` may be several
    where the file locks another one for another platform."""

    name: str
    specifier: str
    required: bool = True

    def holds(self, installed: str) -> bool:
        """Whether ``installed`` is as locked: a lock without a local version (``+cu128``) takes any."""
        try:
            return SpecifierSet(self.specifier, prereleases=True).contains(installed, prereleases=True)
        except InvalidSpecifier:
            return self.specifier.lstrip("=") == installed


def lock_at(folder: Path, packages: Mapping[str, str], file: Path | None = None) -> Lock | None:
    """The lock file that is nearest at or above ``folder`` (or ``file``), compared; None where there is none."""
    found = file or find(folder)
    return compare(found, packages) if found else None


def find(folder: Path) -> Path | None:
    """uv, poetry, pylock, pinned requirements, conda, in this order; the search ends at the top of a repository."""
    for parent in (folder, *folder.parents):
        for file in _candidates(parent):
            return file
        if (parent / ".git").exists():
            return None
    return None


def _candidates(folder: Path) -> Iterator[Path]:
    yield from (file for name in ("uv.lock", "poetry.lock", "pylock.toml") if (file := folder / name).is_file())
    yield from sorted(folder.glob("pylock.*.toml"))
    plain = [folder / name for name in PLAIN] + sorted(folder.glob("requirements*.txt"))
    yield from (file for file in plain if file.is_file() and any(pins_of(file)[0]))
    yield from (file for name in ("environment.yml", "environment.yaml", "conda-lock.yml") if (file := folder / name).is_file())


def compare(file: Path, packages: Mapping[str, str]) -> Lock:
    """Every pin of ``file`` against ``{name: version}`` as installed."""
    try:
        pins, unpinned = pins_of(file)
        pins = list(pins)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        return Lock(str(file), error=f"{type(problem).__name__}: {problem}"[:300])
    installed = dict(packages) | ({"python": ".".join(map(str, sys.version_info[:3]))} if file.suffix in (".yml", ".yaml") else {})
    drift, missing, checked = [], [], 0
    for name, group in _by_name(pins).items():
        version = installed.get(name)
        locked = " or ".join(sorted({pin.specifier.removeprefix("==") for pin in group}))
        if version is None:
            if all(pin.required for pin in group):
                missing.append(Drift(name, locked, None))
            continue
        checked += 1
        if not any(pin.holds(version) for pin in group):
            drift.append(Drift(name, locked, version))
    return Lock(str(file), tuple(drift), tuple(missing), checked, unpinned)


def _by_name(pins: Iterable[Pin]) -> dict[str, list[Pin]]:
    grouped: dict[str, list[Pin]] = {}
    for pin in pins:
        grouped.setdefault(pin.name, []).append(pin)
    return grouped


def pins_of(file: Path) -> tuple[Iterable[Pin], int]:
    """The pins of a file and how many packages it names without one."""
    return _reader_for(file.name)(file)


def _reader_for(name: str) -> Callable[[Path], tuple[Iterable[Pin], int]]:
    if name == "uv.lock":
        return _uv
    if name == "poetry.lock":
        return _poetry
    if name.startswith("pylock.") and name.endswith(".toml"):
        return _pylock
    return _conda if name.endswith((".yml", ".yaml")) else _requirements


# -- requirements ---------------------------------------------------------------------------------------------------------

def _requirements(file: Path) -> tuple[list[Pin], int]:
    pins, unpinned = [], 0
    for requirement in _requirement_lines(file, set()):
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        exact = [s for s in requirement.specifier if s.operator in ("==", "===")]
        if exact:
            pins.append(Pin(canonicalize_name(requirement.name), str(exact[0])))
        else:
            unpinned += 1
    return pins, unpinned


def _requirement_lines(file: Path, seen: set[Path]) -> Iterator[Requirement]:
    """Requirements of a file and of those that it includes; options, paths and URLs are passed over."""
    if file.resolve() in seen:
        return
    seen.add(file.resolve())
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        included = re.match(r"(?:-r|--requirement|-c|--constraint)[ =]?\s*(\S+)", line)
        if included:
            other = file.parent / included[1]
            if other.is_file():
                yield from _requirement_lines(other, seen)
        elif line and not line.startswith("-"):
            try:
                yield Requirement(re.split(r"\s--", line)[0].strip())
            except InvalidRequirement:
                continue  # a path or a URL: it names no version


# -- TOML locks -------------------------------------------------------------------------------------------------------------

def _toml(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _uv(file: Path) -> tuple[list[Pin], int]:
    """Packages of all forks that fit this machine; those that the project itself reaches without extras are required."""
    packages = [package for package in _toml(file).get("package", ()) if _fits(package.get("resolution-markers"))]
    own = [package for package in packages if _is_own(package)]
    needed = _reached(packages, own)
    return [Pin(canonicalize_name(package["name"]), f"=={package['version']}", canonicalize_name(package["name"]) in needed)
            for package in packages if package not in own and "version" in package], 0


def _is_own(package: dict[str, Any]) -> bool:
    source = package.get("source", {})
    return any(kind in source for kind in ("virtual", "editable", "directory"))


def _reached(packages: list[dict[str, Any]], roots: list[dict[str, Any]]) -> set[str]:
    by_name: dict[str, list[dict[str, Any]]] = {}
    for package in packages:
        by_name.setdefault(canonicalize_name(package["name"]), []).append(package)
    todo, reached = list(roots), set[str]()
    while todo:
        for needed in todo.pop().get("dependencies", ()):
            name = canonicalize_name(needed["name"])
            if name not in reached and _fits([needed["marker"]] if "marker" in needed else None):
                reached.add(name)
                todo += by_name.get(name, [])
    return reached


def _poetry(file: Path) -> tuple[list[Pin], int]:
    """Only files that say to which group a package belongs tell which of them are required."""
    pins = []
    for package in _toml(file).get("package", ()):
        markers = package.get("markers")
        fits = _fits([markers] if isinstance(markers, str) else list(markers.values()) if isinstance(markers, dict) else None)
        if fits:
            required = "main" in package.get("groups", ()) and not package.get("optional", False)
            pins.append(Pin(canonicalize_name(package["name"]), f"=={package['version']}", required))
    return pins, 0


def _pylock(file: Path) -> tuple[list[Pin], int]:
    """PEP 751. A package whose marker asks for an extra or a group is not required."""
    pins, unpinned = [], 0
    for package in _toml(file).get("packages", ()):
        marker = package.get("marker")
        optional = marker is not None and bool(re.search(r"\b(extras|dependency_groups|extra)\b", marker))
        if not optional and not _fits([marker] if marker else None):
            continue
        if "version" in package:
            pins.append(Pin(canonicalize_name(package["name"]), f"=={package['version']}", not optional))
        else:
            unpinned += 1
    return pins, unpinned


def _fits(markers: Iterable[str] | None) -> bool:
    """Whether any of the markers holds here; a marker that cannot be read is taken to hold."""
    if markers is None:
        return True
    markers = list(markers)
    return not markers or any(_holds(marker) for marker in markers)


def _holds(marker: str) -> bool:
    try:
        return Marker(marker).evaluate({"extra": ""})
    except (InvalidMarker, UndefinedEnvironmentName, ValueError, KeyError):
        return True


# -- conda --------------------------------------------------------------------------------------------------------------------

def _conda(file: Path) -> tuple[list[Pin], int]:
    """``dependencies`` of an environment.yml. Only packages that Python knows too can be compared; none is required."""
    conda, pip = _conda_entries(file.read_text(encoding="utf-8-sig", errors="replace"))
    installed = conda_packages()
    pins, unpinned = [], 0
    for entry in conda:
        found = re.match(r"(?:[\w./-]+::)?([\w.-]+)\s*(?:(==?)\s*([\w.!*+]+)(?:=[\w.*]+)?)?\s*$", entry)
        if found is None or found[2] is None:
            unpinned += 1
            continue
        name, version = canonicalize_name(found[1]), found[3]
        # conda's single "=" takes every version that begins so
        prefix = found[2] == "=" and not version.endswith("*") and version.count(".") < 2
        name = canonicalize_name(CONDA_NAMES.get(name, name))
        pins.append(Pin(name, f"=={version}.*" if prefix else f"=={version}", required=name in installed))
    for entry in pip:
        try:
            requirement = Requirement(entry)
        except InvalidRequirement:
            continue
        exact = [s for s in requirement.specifier if s.operator == "=="]
        unpinned += not exact
        pins += [Pin(canonicalize_name(requirement.name), str(exact[0]))] if exact else []
    return pins, unpinned


def _conda_entries(text: str) -> tuple[list[str], list[str]]:
    """The conda and the pip entries of an environment.yml: as much YAML as such files hold."""
    conda: list[str] = []
    pip: list[str] = []
    inside, pip_column = False, -1
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if not line:
            continue
        if not line.startswith((" ", "-")):
            inside, pip_column = line.startswith("dependencies:"), -1
            continue
        item = re.match(r"(\s*)-\s+(.*)$", line)
        if not inside or item is None:
            continue
        column, entry = len(item[1]), item[2].strip().strip("\"'")
        if entry == "pip:":
            pip_column = column
        elif pip_column >= 0 and column > pip_column:
            pip.append(entry)
        else:
            pip_column = -1
            conda.append(entry)
    return conda, pip


def conda_packages() -> dict[str, str]:
    """What conda itself has installed into the active environment."""
    prefix = os.environ.get("CONDA_PREFIX")
    found: dict[str, str] = {}
    for file in sorted(Path(prefix, "conda-meta").glob("*.json")) if prefix else ():
        try:
            fields = json.loads(file.read_text(encoding="utf-8"))
            found[canonicalize_name(fields["name"])] = fields["version"]
        except (OSError, ValueError, KeyError):
            continue
    return found
