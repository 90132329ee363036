"""Recording -> ``record.json``: seeds, data, settings, checkpoints, curves in few numbers. Pure."""
from __future__ import annotations

import math
from typing import Any

from traindx.core.observed import Site
from traindx.core.observed.checkpoints import FileRead, FileSaved
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.program import ModelSeen, OptimizerMade, SchedulerMade
from traindx.core.observed.record import ConfigSeen, DataSeen, FirstInputs, Resources, SeedCall, TorchSeen
from traindx.core.observed.seeds import SeedsAtStart
from traindx.core.recording import Recording

LOWER_IS_BETTER = ("val_loss", "loss")


def facts_of(recording: Recording) -> dict[str, Any]:
    return {"seeds": seeds(recording), "data": data(recording), "config": config(recording), "model": models(recording),
            "torch": torch(recording), "checkpoints": checkpoints(recording), "resources": resources(recording)}


def place(site: Site | None) -> str | None:
    return f"{site.file}:{site.line}" if site else None


def seeds(recording: Recording) -> dict[str, Any]:
    calls = [{"function": call.function, "seed": call.value, "where": place(call.site), "calls": call.calls}
             for call in recording.of(SeedCall)]
    start = recording.last(SeedsAtStart)
    unseeded = [call["where"] for call in calls if call["seed"] is None and call["function"] == "numpy.random.default_rng"]
    if start is not None:
        unseeded += [name for name, seeded, used in (("torch", start.torch, True), ("numpy", start.numpy, start.numpy_used),
                                                     ("random", start.random, start.random_used)) if used and not seeded]
    loaders = {str(seen.loader): seen.generator_seed for seen in recording.of(DataSeen) if seen.generator_seed}
    return {"calls": calls, "loader_generators": loaders, "unseeded": unseeded}


def data(recording: Recording) -> dict[str, Any]:
    made = {loader.id: loader for loader in recording.of(LoaderMade)}
    loaders = []
    for seen in recording.of(DataSeen):
        loader = made.get(seen.loader)
        loaders.append({
            "dataset": seen.dataset_class, "size": seen.size, "content": seen.content, "coverage": seen.coverage,
            "split": {"indices": seen.indices, "size": seen.subset} if seen.indices else None, "transforms": seen.transforms,
            "code": seen.code, "where": place(loader.site) if loader else place(seen.site)})
    first = recording.last(FirstInputs)
    inputs = {"digest": first.digest, "forwards": first.forwards, "shape": list(first.shape)} if first else None
    return {"loaders": loaders, "first_inputs": inputs}


def config(recording: Recording) -> dict[str, Any]:
    """What the program was told, and what its optimizers, schedulers and loaders really got."""
    seen = [{"kind": found.source, "name": found.name, "values": found.values} for found in recording.of(ConfigSeen)]
    optimizers = [{"class": made.class_name, "groups": [plain(group) for group in made.settings], "where": place(made.site)}
                  for made in recording.of(OptimizerMade)]
    schedulers = [{"class": made.class_name, "settings": plain(made.settings or {}), "where": place(made.site)}
                  for made in recording.of(SchedulerMade)]
    loaders = [{"batch_size": made.batch_size, "shuffle": made.shuffle, "sampler": made.sampler, "workers": made.workers,
                "drop_last": made.drop_last, "where": place(made.site)} for made in recording.of(LoaderMade)]
    return {"program": seen, "optimizers": optimizers, "schedulers": schedulers, "loaders": loaders}


def plain(settings: dict[str, str]) -> dict[str, Any]:
    """Settings were recorded as text: numbers, booleans and None again."""
    return {name: _value(text) for name, text in settings.items()}


def _value(text: str) -> Any:
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def models(recording: Recording) -> list[dict[str, Any]]:
    rows = []
    for model in recording.of(ModelSeen):
        trainable = [parameter for parameter in model.parameters if parameter.requires_grad]
        rows.append({"class": model.class_name, "where": place(model.made_at or model.site),
                     "parameters": sum(math.prod(parameter.shape) for parameter in model.parameters),
                     "trainable": sum(math.prod(parameter.shape) for parameter in trainable)})
    return rows


def torch(recording: Recording) -> dict[str, Any]:
    seen = recording.last(TorchSeen)
    return {"facts": seen.facts, "settings": seen.settings, "devices": list(seen.devices)} if seen else {}


def resources(recording: Recording) -> dict[str, Any]:
    used = recording.last(Resources)
    if used is None:
        return {}
    return {"peak_rss_bytes": used.peak_rss, "cpu_seconds": used.cpu_seconds, "device_peak_bytes": used.device_peak}


# -- checkpoints -----------------------------------------------------------------------------------------------------------------------

def checkpoints(recording: Recording) -> dict[str, Any]:
    """The last file of each path that ``torch.save`` wrote; which of them is the best and which the last one."""
    saved: dict[str, FileSaved] = {}
    for file in recording.of(FileSaved):
        if "model" in file.holds.values() or not file.holds:
            saved.pop(file.path, None)  # the order is that of the last time
            saved[file.path] = file
    rows = [{"path": file.path, "step": file.step, "holds": sorted(set(file.holds.values())), "where": place(file.site)}
            for file in saved.values()]
    best = _best(list(saved.values()), recording)
    return {"saved": rows, "last": list(saved)[-1] if saved else None, "best": best,
            "read": [file.path for file in recording.of(FileRead)]}


def _best(saved: list[FileSaved], recording: Recording) -> str | None:
    """The one that calls itself best; else the one saved after the lowest validation loss known by then."""
    named = [file.path for file in saved if "best" in file.path.lower().rsplit("/", 1)[-1]]
    if named:
        return named[-1]
    losses = [point for point in recording.series.get("val_loss", ()) if math.isfinite(point[1])]
    known = [(value, file.path) for file in saved if (value := _latest(losses, file.step)) is not None]
    return min(known)[1] if known else None


def _latest(points: list[tuple[int, float]], step: int) -> float | None:
    before = [value for at, value in points if at <= step]
    return before[-1] if before else None


# -- curves in few numbers --------------------------------------------------------------------------------------------------------------

def summary(recording: Recording) -> dict[str, dict[str, Any]]:
    """``{series: {last, min, max, at_min, points}}`` over finite values."""
    found = {}
    for name, points in recording.series.items():
        finite = [(value, step) for step, value in points if math.isfinite(value)]
        if finite:
            low, high = min(finite), max(finite)
            found[name] = {"last": finite[-1][0], "min": low[0], "at_min": low[1], "max": high[0], "points": len(points)}
    return found


def best(curves: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The lowest validation loss, or training loss where there is none."""
    for name in LOWER_IS_BETTER:
        if name in curves:
            return {"metric": name, "value": curves[name]["min"], "step": curves[name].get("at_min")}
    return {}
