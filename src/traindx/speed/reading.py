"""From the facts of a timed run to numbers with names."""
from __future__ import annotations

from collections import defaultdict
from typing import Any

from traindx.core.codec import decode
from traindx.core.observed import Site
from traindx.core.speed import COMPUTE, KINDS, Baseline, DeviceTime, Interval, Operator, Profiled, Spent
from traindx.core.text import Text
from traindx.speed.asking import Answer
from traindx.speed.statistics import interval_of, median, quantile, ratios_of
from traindx.speed.verdict import Measured

Json = Any
GROWN = 1.5  # times the nodes at the beginning
NODES = 8
FAR = 10.0  # times the median: steps in which something else happened (an epoch's end)
LOGGERS = frozenset(("tensorboard", "tensorboardX", "wandb", "mlflow", "matplotlib", "comet_ml", "neptune", "clearml", "aim", "logging", "tqdm"))


def baseline_of(answer: Answer) -> Baseline | None:
    """None where no step was timed."""
    seconds = answer.facts.get("bare") or answer.facts.get("first", {}).get("seconds", [])[1:]
    if not seconds:
        return None
    usual = [one for one in seconds if one <= FAR * median(seconds)]
    program = answer.facts.get("program") or {}
    precision = f"autocast {program['autocast']}" if program.get("autocast") else program.get("dtype", "")
    return Baseline(sum(usual) / len(usual), (quantile(usual, 0.1), quantile(usual, 0.9)), len(usual), program.get("batch"),
                    program.get("tokens"), precision, program.get("hardware", ""), program.get("threads", 1), program.get("model", ""),
                    program.get("parameters"), program.get("accumulated", 1), program.get("optimizers", 1))


def measured_of(answer: Answer, elasticity: float | None = None) -> Measured:
    profile = answer.facts.get("profile")
    if profile is None:
        return Measured(len(answer.facts.get("bare") or []))
    operations = profile.get("operations") or {}
    gains = {name: _gain(answer, name) for name in ("held", "unread", "unlogged")}
    return Measured(len(profile["step_seconds"]), seconds_of(profile), gains["held"], gains["unread"], gains["unlogged"], elasticity,
                    sum(operations.get("by_phase", {}).get(name, 0.0) for name in (*computing(profile), "optimizer", "host")) or None,
                    operations.get("elements"), (answer.facts.get("program") or {}).get("device") or "cpu",
                    operations.get("call_seconds"), profile.get("filling", 0.0) / profile["steps"], growth_of(profile),
                    _device_time(answer))


def _gain(answer: Answer, name: str) -> Interval | None:
    """None where nothing was taken away, whatever was timed."""
    if answer.state(name).get("state", "applied") != "applied":
        return None
    return interval_of(ratios_of(answer.blocks, "", name))


def seconds_of(profile: Json) -> dict[str, float]:
    """Of a step, by share. Operations that the program calls itself are computing; what a logging library does in Python is logging.
    Forwards without gradients are evaluation and count nowhere, unless every step makes one."""
    phases = {phase: seconds / profile["steps"] for phase, seconds in profile["seconds"].items()}
    host = phases["host"]
    logged = host * _logging_share(profile)
    outside = min(host - logged, (profile.get("operations") or {}).get("outside_seconds", 0.0))
    compute = sum(phases[name] for name in computing(profile)) + outside
    return {"input": phases["input"], "host": host - logged - outside, "sync": phases["sync"], "transfer": phases["transfer"],
            "compute": compute, "optimizer": phases["optimizer"], "logging": phases["logging"] + logged}


def computing(profile: Json) -> tuple[str, ...]:
    return (*COMPUTE, "evaluation") if profile.get("evaluates") else COMPUTE


def _device_time(answer: Answer) -> DeviceTime | None:
    profiled = profiled_of(answer)
    return profiled.device if profiled is not None else None


def profiled_of(answer: Answer) -> Profiled | None:
    """Of torch.profiler; None where it was not reached."""
    found = answer.facts.get("torch")
    if found is None:
        return None
    if "why" in found:
        return Profiled(why=decode(Text, found["why"]))
    seconds = found["seconds"]
    host = sum(found["kinds"].values()) or 1.0
    operators = tuple(Operator(one["name"], one["seconds"] / host, one["calls"]) for one in found["operators"])
    bare = answer.facts.get("bare") or []
    device = device_of(found["device"], seconds, median(bare) if bare else seconds) if found["device"] else None
    return Profiled(found["steps"], seconds, {name: found["kinds"][name] / host for name in KINDS}, operators, device)


def device_of(found: Json, profiled: float, bare: float) -> DeviceTime:
    """Shares of a step without the profiler. That one delays the host and hardly the kernels: what it adds to a step is taken from the times
    without work, from waiting for launches first."""
    busy = found["computing"] + found["copying"]
    step = max(bare, busy)
    idle = dict(found["idle"])
    added = max(sum(idle.values()) - (step - busy), 0.0) if profiled > bare else 0.0
    launching = min(added, idle["launch"])
    idle["launch"] -= launching
    left = sum(idle.values())
    scale = 1 - (added - launching) / left if left else 1.0
    step = busy + scale * left or 1.0
    return DeviceTime({"computing": found["computing"] / step, "copying": found["copying"] / step, "idle": scale * left / step},
                      {cause: scale * seconds / step for cause, seconds in idle.items()},
                      {way: seconds / step for way, seconds in found["copies"].items()},
                      found["kernels"], found["kernel_seconds"], found["launches"], found["launch_seconds"])


def growth_of(profile: Json) -> tuple[int, int] | None:
    """Nodes of the graph behind the loss, first and last, where they never fall and grow while they are looked at."""
    looked = profile["backward"]["nodes"]
    nodes = [*profile.get("first_nodes", ()), *looked]
    if len(looked) < 2 or nodes != sorted(nodes) or looked[0] == looked[-1] or nodes[-1] < max(GROWN * nodes[0], nodes[0] + NODES):
        return None
    return nodes[0], nodes[-1]


def _logging_share(profile: Json) -> float:
    """Of the host's samples, those inside a library that logs."""
    host = [line for line in profile["lines"] if line["phase"] == "host"]
    total = sum(line["count"] for line in host)
    return sum(line["count"] for line in host if line["calls"].partition(".")[0] in LOGGERS) / total if total else 0.0


def lines_of(profile: Json, phases: tuple[str, ...] = ()) -> list[Spent]:
    """The user's lines by their share of the step; with ``phases``, by their share of these. Largest first."""
    counts: dict[str, float] = defaultdict(float)
    for line in profile["lines"]:
        counts[line["phase"]] += line["count"]
    wanted = {phase: seconds for phase, seconds in profile["seconds"].items() if not phases or phase in phases}
    total = sum(wanted.values()) or 1.0
    found: dict[tuple[str, Site], tuple[float, dict[str, float]]] = {}
    for line in profile["lines"]:
        if line["phase"] not in wanted or not line["site"]:
            continue
        share = wanted[line["phase"]] / total * line["count"] / counts[line["phase"]]
        before, calls = found.get((line["phase"], site_of(line["site"])), (0.0, {}))  # type: ignore[arg-type]
        calls[line["calls"]] = calls.get(line["calls"], 0.0) + share
        found[line["phase"], site_of(line["site"])] = before + share, calls  # type: ignore[index]
    spent = [Spent(phase, site, share, max(calls, key=lambda name: calls[name])) for (phase, site), (share, calls) in found.items()]
    return sorted(spent, key=lambda one: -one.share)


def site_of(value: Json) -> Site | None:
    return decode(Site, value) if value else None
