"""What changed between two runs, and only that; whether a gain is more than the spread over seeds."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx.core.recording import Recording
from traindx.core.student import welch
from traindx.runs.reading import Run, is_number
from traindx.signals.monitors import SIX

SECTIONS = ("code", "config", "seeds", "data", "environment")
TIMED = frozenset(("samples_per_second", "peak_memory_bytes"))  # never the same twice
Change = dict[str, list[Any]]
Curves = Mapping[str, Sequence[tuple[int, float]]]


def diff(a: Run, b: Run) -> dict[str, Any]:
    """``{section: {name: [value in a, value in b]}}`` of what differs, and the curves' first difference."""
    found: dict[str, Any] = {section: changed(_section(a, section), _section(b, section)) for section in SECTIONS}
    found["curves"] = curves(a, b)
    return found


def _section(run: Run, section: str) -> dict[str, Any]:
    record = run.record
    if section == "environment":
        return _environment(run)
    inner = record.get(section)
    inner = inner if isinstance(inner, dict) else {}
    return {"code": _code, "config": _config, "seeds": _seeds, "data": _data}[section](run, inner)


def _code(run: Run, code: dict[str, Any]) -> dict[str, Any]:
    names = ("commit", "branch", "diff_sha256")
    files = {f"file {name}": _digest(run, name) for name in mapping(code.get("files"))}
    script = {"script": run.fields.get("script")}
    return script | {name: code.get(name) for name in names} | files


def _digest(run: Run, name: str) -> str | None:
    """Of a file that was kept; a name that leads out of the record is none."""
    import hashlib
    root = (run.path / "code" / "files").resolve()
    file = (root / name).resolve()
    if not file.is_relative_to(root):
        return None
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return None


def config_of(run: Run) -> dict[str, Any]:
    """Settings by name, as the record has them; {} where none are known yet."""
    config = mapping(run.record.get("config"))
    return {name: value for name, value in _config(run, config).items() if name != "argv"} if config else {}


def _config(run: Run, config: dict[str, Any]) -> dict[str, Any]:
    """The program's own settings by their names, then what the optimizers, schedulers and loaders got."""
    found = {"argv": run.fields.get("argv")}
    for part in rows_of(config.get("program")):
        found |= flat(part.get("values"), f"{part.get('kind')} ")
    for kind in ("optimizers", "schedulers", "loaders"):
        for number, part in enumerate(rows_of(config.get(kind))):
            shown = {name: value for name, value in part.items() if name != "where"}
            found |= flat(shown, f"{kind.removesuffix('s')} {number + 1} ")
    for number, model in enumerate(rows_of(run.record.get("model"))):
        found |= flat({name: value for name, value in model.items() if name != "where"}, f"model {number + 1} ")
    return found


def _seeds(run: Run, seeds: dict[str, Any]) -> dict[str, Any]:
    """By function and order: a line that moved is the same seeding."""
    found: dict[str, Any] = {}
    count: dict[str, int] = {}
    for call in rows_of(seeds.get("calls")):
        function = str(call.get("function"))
        count[function] = count.get(function, 0) + 1
        found[f"{function} {count[function]}" if count[function] > 1 else function] = call.get("seed")
    return found | flat(seeds.get("loader_generators"), "loader generator ") | {"unseeded": seeds.get("unseeded") or []}


def _data(run: Run, data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, loader in enumerate(rows_of(data.get("loaders"))):
        found |= flat({name: value for name, value in loader.items() if name != "where"}, f"loader {number + 1} ")
    first = mapping(data.get("first_inputs"))
    return found | {"first inputs": first.get("digest")}


def _environment(run: Run) -> dict[str, Any]:
    environment, torch = run.environment, mapping(run.record.get("torch"))
    found = {name: environment.get(name) for name in ("python", "system", "machine", "cores")}
    found |= flat(environment.get("packages"), "") | flat(environment.get("variables"), "$") | flat(torch.get("settings"), "torch ")
    return found | {"devices": torch.get("devices"), "drivers": environment.get("drivers")}


def flat(value: Any, prefix: str) -> dict[str, Any]:
    """Nested mappings and lists of mappings as one, names joined by points."""
    if not isinstance(value, dict):
        return {}
    found: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, dict) and item:
            found |= flat(item, f"{prefix}{name}.")
        elif isinstance(item, list) and item and all(isinstance(part, dict) for part in item):
            for number, part in enumerate(item):
                found |= flat(part, f"{prefix}{name}.{number}.")
        else:
            found[f"{prefix}{name}"] = item
    return found


def changed(a: dict[str, Any], b: dict[str, Any]) -> Change:
    return {name: [a.get(name), b.get(name)] for name in {**a, **b} if a.get(name) != b.get(name)}


def variables(found: dict[str, Any]) -> list[str]:
    """What a person would call the variables that changed: code, a setting, a seed, a package. What follows from a setting
    (the optimizer's own ``lr`` from ``--lr``) is not counted again."""
    names: list[str] = []
    if any(name in found["code"] for name in ("commit", "diff_sha256")) or any(name.startswith("file ") for name in found["code"]):
        names.append("code")
    program = [name.split(" ", 1)[-1] for name in found["config"] if name.startswith(("argparse ", "dataclass ", "omegaconf ", "namespace "))]
    constants = [name.split(" ", 1)[-1] for name in found["config"] if name.startswith("constants ")]
    names += list(dict.fromkeys([*program, *constants]))
    if not program and not constants:
        names += [name for name in found["config"] if name != "argv"] or (["argv"] if "argv" in found["config"] else [])
    if constants and "code" in names:
        names.remove("code")  # the constants are what changed in the code, as far as is seen
    seeds = [name for name in found["seeds"] if name != "unseeded"]
    if seeds and not any("seed" in name for name in names):
        names.append("seed")
    names += [f"data ({name})" for name in found["data"] if name.endswith((" content", " size", " indices"))][:1]
    return names + [f"environment ({name})" for name in found["environment"] if name not in ("drivers",)]


# -- curves ------------------------------------------------------------------------------------------------------------------------

def curves(a: Run, b: Run) -> dict[str, Any]:
    """``{series: {last: [a, b], min: [a, b]}}`` of those that differ; ``first_difference`` over all of them, or ``not_compared``: large
    recordings are not gone through step by step."""
    found: dict[str, Any] = {}
    for name in {**a.curves, **b.curves}:
        one, other = mapping(a.curves.get(name)), mapping(b.curves.get(name))
        if name not in TIMED and any(one.get(key) != other.get(key) for key in ("last", "min")):
            found[name] = {key: [one.get(key), other.get(key)] for key in ("last", "min")}
    if a.is_large or b.is_large:
        return found | {"not_compared": True}
    first = first_difference(a.recording.series, b.recording.series)
    return found | ({"first_difference": first} if first else {})


def first_difference(a: Curves, b: Curves) -> dict[str, Any] | None:
    """The first step that both runs have and at which a curve of both differs. Timings are not compared."""
    earliest: dict[str, Any] | None = None
    order = [quantity.series for quantity in SIX]
    for name in sorted(set(a) & set(b) - TIMED, key=lambda name: (order.index(name) if name in order else len(order), name)):
        other = dict(b[name])
        for step, value in a[name]:
            if step in other and not alike(value, other[step]):
                if earliest is None or step < earliest["step"]:
                    earliest = {"step": step, "series": name, "a": value, "b": other[step]}
                break
    return earliest


def alike(a: float, b: float) -> bool:
    """Bit for bit; NaN is like NaN."""
    return a == b or (math.isnan(a) and math.isnan(b))


def points_in_common(a: Recording, b: Recording) -> tuple[int, int]:
    """How many points, of how many curves, both runs have."""
    shared = [len(dict(a.series[name]).keys() & dict(b.series[name]).keys()) for name in set(a.series) & set(b.series) - TIMED]
    return sum(shared), sum(count > 0 for count in shared)


# -- a gain against the spread over seeds ----------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seeds, one for each seed. ``values`` are their best metric."""

    name: str
    runs: tuple[str, ...]
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation; None for a single run."""
        n = len(self.values)
        return math.sqrt(sum((value - self.mean) ** 2 for value in self.values) / (n - 1)) if n > 1 else None


def groups(runs: Sequence[Run]) -> tuple[str, list[Group]]:
    """The metric that all runs have, and the groups in the order of their first run."""
    metric = next((name for name in ("val_loss", "loss") if all(name in run.curves for run in runs)), "loss")
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(_identity(run), []).append(run)
    made = []
    for members in found.values():
        valued = [(run.name, value) for run in _one_a_seed(members)
                  if is_number(value := mapping(run.curves.get(metric)).get("min"))]
        if valued:
            made.append(Group(members[0].name, tuple(name for name, _ in valued), tuple(float(value) for _, value in valued)))
    return metric, made


def _one_a_seed(runs: Sequence[Run]) -> list[Run]:
    """The first of those with the same seeds: a repetition says nothing about the spread over seeds."""
    found: dict[str, Run] = {}
    for run in runs:
        seeds = _section(run, "seeds")
        known = sorted((name, str(value)) for name, value in seeds.items() if name != "unseeded")
        found.setdefault(repr(known) if known and not seeds.get("unseeded") else run.name, run)
    return list(found.values())


def gain(a: Run, b: Run, others: Sequence[Run]) -> dict[str, Any] | None:
    """How ``b`` differs from ``a`` in its best metric, against the spread over the seeds of ``others`` that are like one of the
    two. None where they differ in the seed alone, or have no metric in common."""
    identities = {_identity(a): 0, _identity(b): 1}
    if len(identities) == 1:
        return None
    fitting = [run for run in others if run.name not in (a.name, b.name) and run.curves and _identity(run) in identities]
    metric, made = groups([a, b, *fitting])
    if len(made) != 2:
        return None
    gap, interval = difference(made[1], made[0])
    return {"metric": metric, "difference": gap, "interval": list(interval) if interval else None,
            "seeds": [len(group.values) for group in made]}


def _identity(run: Run) -> str:
    """Everything but the seeds, what they decide (splits, first batches), and the machine."""
    config = {name: value for name, value in _section(run, "config").items() if "seed" not in name.lower() and name != "argv"}
    given = run.fields.get("argv")
    argv = [word for word in given if isinstance(word, str)] if isinstance(given, list) else []
    unseeded, skip = [], False
    for word in argv:
        if not skip and not word.lower().startswith("--seed="):
            if word.lower() in ("--seed", "-s"):
                skip = True
                continue
            unseeded.append(word)
        skip = False
    data = {name: value for name, value in _section(run, "data").items() if name.endswith((" content", " size"))}
    return repr((_section(run, "code"), sorted(config.items(), key=str), unseeded, sorted(data.items(), key=str)))


def difference(a: Group, b: Group, level: float = 0.95) -> tuple[float, tuple[float, float] | None]:
    """mean(a) - mean(b) and its interval by Welch's method (see :func:`welch`); None where both have one run."""
    return a.mean - b.mean, welch(a.values, b.values, level)


def rows_of(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
