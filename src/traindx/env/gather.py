"""Gathers the facts of this machine. torch is asked in a child process, which a broken driver may take down."""
from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from traindx.core.codec import decode
from traindx.env.facts import Device, Driver, Facts, Proof, TorchFacts
from traindx.env.locks import lock_at

# the allow-list: nothing else of the environment is ever recorded
VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_VISIBLE_DEVICES",
             "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ZE_AFFINITY_MASK", "PYTORCH_ENABLE_MPS_FALLBACK",
             "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
             "PYTHONHASHSEED", "WORLD_SIZE", "RANK", "LOCAL_RANK")
SECONDS = 120.0  # that one device may take: a cold CUDA start takes tens of them


def gather(folder: Path, lock_file: Path | None = None) -> Facts:
    """Facts of this machine and of the lock file nearest to ``folder``."""
    torch, devices = ask_torch()
    packages = installed_packages()
    return dataclasses.replace(machine_facts(), torch=torch, devices=tuple(devices), drivers=drivers(), packages=packages,
                               lock=lock_at(folder, packages, lock_file))


def machine_facts() -> Facts:
    """What is known without torch."""
    return Facts(
        python=platform.python_version(), executable=sys.executable,
        virtual=sys.prefix != sys.base_prefix or bool(os.environ.get("CONDA_PREFIX")),
        system=platform.system(), release=platform.release(), machine=platform.machine(),
        cores=_cores(), memory_bytes=_memory(), shared_memory_bytes=_shared_memory(), translated=_translated(),
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ})


def installed_packages() -> dict[str, str]:
    """``{normalised name: version}`` of every distribution that this Python imports."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        try:
            name, version = distribution.metadata["Name"], distribution.version
        except Exception:  # half removed: no metadata
            continue
        if name and version:
            found.setdefault(normalised(name), version)
    return dict(sorted(found.items()))


def normalised(name: str) -> str:
    """PEP 503: ``Scikit_Learn`` -> ``scikit-learn``."""
    return re.sub(r"[-_.]+", "-", name).lower()


# -- torch, in a child ----------------------------------------------------------------------------------------------------

def ask_torch(seconds: float = SECONDS, command: list[str] | None = None) -> tuple[TorchFacts, list[Device]]:
    """Facts and devices, each with its proof. A child that dies at a device is started again for the others."""
    torch: dict[str, Any] = {}
    devices: dict[str, dict[str, Any]] = {}
    proofs: dict[str, dict[str, Any]] = {}
    while True:
        how, error = _listen([*(command or [sys.executable, "-m", "traindx.gauges.tools.devices"]), *proofs], seconds, torch, devices, proofs)
        unproved = [where for where in devices if where not in proofs]
        if how == "done" or not unproved:
            break
        proofs[unproved[-1]] = {"how": how, "error": error}
    if not torch:
        torch["error"] = error or "torch could not be asked"
    found = [dataclasses.replace(decode(Device, fields), proof=decode(Proof, proofs[where]) if where in proofs else None)
             for where, fields in devices.items()]
    return decode(TorchFacts, torch), [_named(device) for device in found]


def _listen(command: list[str], seconds: float, torch: dict[str, Any], devices: dict[str, Any],
            proofs: dict[str, Any]) -> tuple[str, str | None]:
    """Runs the child and takes in its lines. How it ended, and its last words."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
        out, err, how = done.stdout, done.stderr, "done" if done.returncode == 0 else "crashed"
        error = None if how == "done" else _last_words(err) or f"exit status {done.returncode}"
    except subprocess.TimeoutExpired as problem:
        out, how, error = problem.stdout or b"", "hung", f"no answer within {seconds:g} s"
    except OSError as problem:
        return "done", str(problem)
    for line in out.splitlines():
        try:
            fields = json.loads(line)
            what = fields.pop("what")
        except (ValueError, KeyError, AttributeError):
            continue  # a driver that prints
        if what == "torch":
            torch.update(fields)
        else:
            where = fields.pop("where")
            (devices if what == "device" else proofs)[where] = fields
    return how, error


def _last_words(err: bytes) -> str:
    lines = err.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


# -- drivers, asked without torch -------------------------------------------------------------------------------------------

def drivers() -> tuple[Driver, ...]:
    return tuple(driver for driver in (_nvidia(), _amd()) if driver is not None)


def _nvidia() -> Driver | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        module = Path("/proc/driver/nvidia/version")
        return nvidia_from_module(module.read_text()) if module.is_file() else None
    return nvidia_from_smi(*_output([tool, "--query-gpu=driver_version,name", "--format=csv,noheader"]))


def nvidia_from_smi(out: str, error: str | None) -> Driver | None:
    """From what ``nvidia-smi`` said. Without a GPU it says so, and there is nothing to judge."""
    rows = [[cell.strip() for cell in line.split(",", 1)] for line in out.splitlines() if "," in line]
    if rows and error is None:
        return Driver("nvidia", rows[0][0], tuple(row[1] for row in rows))
    said = (out.strip().splitlines() or [error or ""])[-1][:300]
    if "No devices were found" in said:
        return None
    return Driver("nvidia", error=said or "nvidia-smi said nothing")


def nvidia_from_module(text: str) -> Driver | None:
    found = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
    return Driver("nvidia", found[1]) if found else None


def _amd() -> Driver | None:
    """The kernel's own list of compute nodes; a CPU node has no SIMD units."""
    nodes = Path("/sys/class/kfd/kfd/topology/nodes")
    try:
        gpus = [node.joinpath("name").read_text().strip() or node.name for node in sorted(nodes.iterdir())
                if re.search(r"^simd_count [1-9]", node.joinpath("properties").read_text(), re.MULTILINE)]
    except OSError:
        return None
    version = Path("/sys/module/amdgpu/version")
    return Driver("amd", version.read_text().strip() if version.is_file() else None, tuple(gpus)) if gpus else None


def _output(command: list[str]) -> tuple[str, str | None]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as problem:
        return "", str(problem)
    return done.stdout, None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


# -- the machine ------------------------------------------------------------------------------------------------------------

def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _shared_memory() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total
    except OSError:
        return None


def _translated() -> bool:
    """Whether an x86 Python runs on an ARM Mac."""
    if platform.system() != "Darwin" or platform.machine() != "x86_64":
        return False
    return _output(["sysctl", "-n", "sysctl.proc_translated"])[0].strip() == "1"


def _named(device: Device) -> Device:
    """The CPU by its own name: torch does not know it."""
    return dataclasses.replace(device, name=_processor(), memory_bytes=_memory()) if device.kind == "cpu" else device


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()
