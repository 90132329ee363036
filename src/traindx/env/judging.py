"""Facts -> problems: pure, so that machines which are not here can be judged from what was recorded on them."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traindx.core.amounts import binary_size
from traindx.core.text import EMPTY, Text, same
from traindx.env import drivers as table
from traindx.env import words
from traindx.env.facts import Device, Drift, Driver, Facts, Lock

Level = Literal["broken", "warning", "note"]
LEVELS: tuple[Level, ...] = ("broken", "warning", "note")
NEEDED_PYTHON = (3, 10)
SMALL_SHM = 512 * 2**20  # bytes; a container's default is 64 MiB
NAMED = 5  # drifted packages named in the sentence


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, or good to know. ``id`` is stable, for programs."""

    id: str
    level: Level
    what: Text
    fix: Text


def problems(facts: Facts) -> list[Problem]:
    """Everything there is to say, the broken first."""
    found = [*_python(facts), *_torch(facts), *_drivers(facts), *_devices(facts), *_settings(facts), *_lock(facts)]
    return sorted(found, key=lambda problem: LEVELS.index(problem.level))


def is_sound(found: list[Problem]) -> bool:
    return all(problem.level != "broken" for problem in found)


def _python(facts: Facts) -> Iterator[Problem]:
    if table.parts(facts.python)[:2] < NEEDED_PYTHON:
        yield Problem("python-old", "broken", words.OLD_PYTHON.fill(version=facts.python), words.FIX_PYTHON)
    if facts.translated:
        yield Problem("python-translated", "warning", words.TRANSLATED, words.FIX_TRANSLATED)
    if not facts.virtual:
        yield Problem("python-system", "note", words.NOT_VIRTUAL, words.FIX_VIRTUAL)


def _torch(facts: Facts) -> Iterator[Problem]:
    torch = facts.torch
    if torch.version is None:
        fix = words.FIX_TORCH.fill(executable=facts.executable)
        yield Problem("torch-missing", "broken", words.NO_TORCH.fill(error=torch.error or ""), fix)
        return
    installed = facts.packages.get("torch")
    if installed and installed.split("+")[0] != torch.version.split("+")[0]:
        what = words.TWO_TORCHES.fill(imported=torch.version, file=torch.file or "", installed=installed)
        yield Problem("torch-twice", "warning", what, words.FIX_TWO_TORCHES)
    if torch.threads and torch.threads > facts.cores:
        what = words.THREADS.fill(threads=torch.threads, cores=facts.cores)
        yield Problem("threads", "warning", what, words.FIX_THREADS.fill(cores=facts.cores))


# -- does the build fit the driver? ---------------------------------------------------------------------------------------------

def _drivers(facts: Facts) -> Iterator[Problem]:
    if facts.torch.version is None:
        return
    hidden = _hiding(facts)
    if hidden:
        what = words.HIDDEN.fill(variable=hidden, value=facts.variables[hidden])
        yield Problem("gpus-hidden", "note", what, words.FIX_HIDDEN.fill(variable=hidden))
    for driver in facts.drivers:
        yield from _driver(facts, driver, bool(hidden))
    built = built_for(facts)
    if built and not facts.drivers and not _gpus(facts):
        if facts.torch.xpu and not facts.torch.cuda and not facts.torch.hip:
            yield Problem("no-gpu", "note", words.XPU_MISSING.fill(xpu=facts.torch.xpu), words.FIX_NO_GPU)
        else:
            yield Problem("no-gpu", "note", words.NO_GPU.fill(built=built), words.FIX_NO_GPU)


def _driver(facts: Facts, driver: Driver, hidden: bool) -> Iterator[Problem]:
    torch = facts.torch
    if driver.error:
        level: Level = "broken" if torch.cuda else "warning"
        yield Problem("driver-broken", level, words.DRIVER_BROKEN.fill(error=driver.error), words.FIX_DRIVER_BROKEN)
        return
    wanted = {"nvidia": torch.cuda, "amd": torch.hip}[driver.vendor]
    gpu = ", ".join(sorted(set(driver.gpus))) or "GPU"
    if wanted is None:
        if not hidden:
            yield _wrong_build(facts, driver, gpu)
    elif driver.vendor == "nvidia" and driver.version:
        yield from _nvidia(facts, driver.version, wanted, hidden)


def _wrong_build(facts: Facts, driver: Driver, gpu: str) -> Problem:
    """A GPU with its driver, and a torch that cannot use it."""
    built, version = built_for(facts), facts.torch.version or ""
    served = table.newest_for(driver.version or "", facts.system) or "11.x"
    fix = words.FIX_CPU_BUILD.fill(cuda=served) if driver.vendor == "nvidia" else words.FIX_CPU_BUILD_AMD
    if built is None:
        what = words.CPU_BUILD.fill(gpu=gpu, driver=driver.version or "", version=version)
        return Problem("cpu-build", "broken", what, fix)
    vendor = {"nvidia": "NVIDIA", "amd": "AMD"}[driver.vendor]
    level: Level = "note" if _gpus(facts) else "broken"  # two vendors in one machine, the other one works
    return Problem("other-build", level, words.OTHER_BUILD.fill(vendor=vendor, gpu=gpu, version=version, built=built), fix)


def _nvidia(facts: Facts, driver: str, cuda: str, hidden: bool) -> Iterator[Problem]:
    minimum, shipped = table.minimum_for(cuda, facts.system), table.ships_with(cuda)
    if minimum is not None and table.parts(driver) < minimum:
        served = table.newest_for(driver, facts.system)
        fix = words.FIX_OLD_DRIVER.fill(served=served) if served else words.FIX_OLD_DRIVER_ONLY
        needed = ".".join(str(part) for part in minimum if part)
        yield Problem("driver-old", "broken", words.OLD_DRIVER.fill(driver=driver, cuda=cuda, minimum=needed), fix)
        return
    if shipped is not None and table.parts(driver)[0] < shipped and facts.system == "Linux":
        what = words.MINOR_DRIVER.fill(driver=driver, cuda=cuda, shipped=shipped)
        yield Problem("driver-minor", "note", what, words.FIX_MINOR_DRIVER)
    if not _gpus(facts) and not hidden:
        error = facts.torch.why_no_device
        fix = next((text for number, text in words.ERRORS.items() if error and f"rror {number}" in error), words.FIX_NO_DEVICE)
        what = words.NO_DEVICE.fill(cuda=cuda, driver=driver, error=same(error) if error else words.NO_WORDS)
        yield Problem("no-device", "broken", what, fix)


def built_for(facts: Facts) -> str | None:
    """Which graphics this torch was built for, None for the CPU alone."""
    torch = facts.torch
    if torch.cuda:
        return f"CUDA {torch.cuda}"
    if torch.hip:
        return f"ROCm {torch.hip}"
    return f"XPU {torch.xpu}" if torch.xpu else None


def _gpus(facts: Facts) -> list[Device]:
    return [device for device in facts.devices if device.kind != "cpu"]


def _hiding(facts: Facts) -> str | None:
    """The variable that hides all GPUs, if one does."""
    names = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    empty = {"", "-1", "none", "void", "NoDevFiles"}
    return next((name for name in names if facts.variables.get(name, "all") in empty), None)


# -- every device --------------------------------------------------------------------------------------------------------------

def _devices(facts: Facts) -> Iterator[Problem]:
    for device in facts.devices:
        yield from _architecture(facts, device)
        yield from _proof(device)
    cuda = [device for device in facts.devices if device.kind in ("cuda", "rocm")]
    visible = facts.variables.get("CUDA_VISIBLE_DEVICES", facts.variables.get("HIP_VISIBLE_DEVICES"))
    if len(cuda) > 1 and visible is None:
        yield Problem("several-gpus", "note", words.SEVERAL.fill(count=len(cuda)), words.FIX_SEVERAL)
    if visible is not None:
        yield from _bad_index(facts, visible)
    if any(device.kind == "mps" for device in facts.devices):
        on = facts.variables.get("PYTORCH_ENABLE_MPS_FALLBACK") == "1"
        yield Problem("mps", "note", words.MPS.fill(fallback=words.MPS_ON if on else words.MPS_OFF), words.FIX_MPS)


def _bad_index(facts: Facts, visible: str) -> Iterator[Problem]:
    count = sum(len(driver.gpus) for driver in facts.drivers if driver.vendor == "nvidia")
    for word in filter(None, (word.strip() for word in visible.split(","))):
        if word.isdigit() and count and int(word) >= count:
            what = words.BAD_INDEX.fill(value=visible, index=word, count=count, last=count - 1)
            yield Problem("visible-devices", "broken", what, words.FIX_BAD_INDEX.fill(last=count - 1))
            return


def _architecture(facts: Facts, device: Device) -> Iterator[Problem]:
    built, capability = facts.torch.architectures, device.capability
    if not built or capability is None:
        return
    shown = ", ".join(built)
    if device.kind == "rocm" and capability not in built and "HSA_OVERRIDE_GFX_VERSION" not in facts.variables:
        what = words.ARCHITECTURE_AMD.fill(built=shown, name=device.name, capability=capability)
        yield Problem("architecture", "broken", what, words.FIX_NEWER)
    elif device.kind == "cuda" and not table.runs_on(built, capability):
        newest = max((int(digits) for name in built if (digits := "".join(filter(str.isdigit, name)))), default=0)
        fix = words.FIX_NEWER if int(capability.replace(".", "")) > newest else words.FIX_OLDER
        what = words.ARCHITECTURE.fill(built=shown, name=device.name, capability=capability)
        yield Problem("architecture", "broken", what, fix)


def _proof(device: Device) -> Iterator[Problem]:
    proof, name = device.proof, f"{label(device)}"
    if proof is None:
        return
    said = {"raised": words.PROOF_RAISED, "crashed": words.PROOF_CRASHED, "hung": words.PROOF_HUNG}.get(proof.how)
    if said is not None:
        yield Problem("device-fails", "broken", said.fill(device=name, error=proof.error or ""), words.FIX_PROOF)
    elif not (proof.softmax_sums and proof.step):
        what = words.STEP_WRONG if proof.softmax_sums else words.SUMS_WRONG
        yield Problem("device-wrong", "broken", words.PROOF_WRONG.fill(device=name, what=what), words.FIX_PROOF)


def label(device: Device) -> str:
    """``cuda:0 (NVIDIA A100)``."""
    where = device.kind if device.kind in ("cpu", "mps") else f"{device.kind}:{device.index}"
    return f"{where} ({device.name})" if device.name else where


# -- settings and the lock ------------------------------------------------------------------------------------------------------

def _settings(facts: Facts) -> Iterator[Problem]:
    value = facts.variables.get("HSA_OVERRIDE_GFX_VERSION")
    if value:
        yield Problem("gfx-override", "warning", words.OVERRIDE.fill(value=value), words.FIX_OVERRIDE)
    value = facts.variables.get("CUDA_LAUNCH_BLOCKING", "0")
    if value not in ("", "0"):
        yield Problem("launch-blocking", "note", words.BLOCKING.fill(value=value), words.FIX_BLOCKING)
    shm = facts.shared_memory_bytes
    if facts.system == "Linux" and shm is not None and shm < SMALL_SHM:
        yield Problem("shared-memory", "warning", words.SHM.fill(size=binary_size(shm)), words.FIX_SHM)


def _lock(facts: Facts) -> Iterator[Problem]:
    lock = facts.lock
    if lock is None:
        yield Problem("no-lock", "warning", words.NO_LOCK, words.FIX_NO_LOCK)
    elif lock.error:
        yield Problem("lock-unreadable", "broken", words.LOCK_BROKEN.fill(file=lock.file, error=lock.error), words.FIX_LOCK_BROKEN)
    else:
        yield from _drift(lock)


def _drift(lock: Lock) -> Iterator[Problem]:
    name = Path(lock.file).name
    fix = words.FIX_DRIFT.fill(command=install_command(lock.file))
    if lock.drift:
        said = words.ONE_DRIFT if len(lock.drift) == 1 else words.DRIFT
        yield Problem("drift", "broken", said.fill(count=len(lock.drift), file=name, some=_some(lock.drift)), fix)
    if lock.missing:
        some = ", ".join(f"{d.package} {d.locked}" for d in lock.missing[:NAMED]) + (" …" if len(lock.missing) > NAMED else "")
        yield Problem("lock-missing", "warning", words.MISSING.fill(count=len(lock.missing), file=name, some=some), fix)


def _some(drift: tuple[Drift, ...]) -> Text:
    """The packages that matter most to a training first."""
    first = ("torch", "numpy", "transformers", "lightning", "accelerate")
    ordered = sorted(drift, key=lambda d: (first.index(d.package) if d.package in first else len(first), d.package))
    said = EMPTY
    for at, item in enumerate(ordered[:NAMED]):
        between = Text(", ", "，") if at else EMPTY
        said += between + words.DRIFT_ITEM.fill(package=item.package, installed=item.installed, locked=item.locked)
    return said + same(" …") if len(drift) > NAMED else said


def install_command(file: str) -> str:
    name = Path(file).name
    known = {"uv.lock": "uv sync", "poetry.lock": "poetry install"}
    if name.endswith((".yml", ".yaml")):
        return f"conda env update -f {name}"
    return known.get(name, f"pip install -r {name}")
