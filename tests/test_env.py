"""``traindx env``: machines that are not here, judged from what was recorded on them; lock files; and this machine, for real."""
from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from traindx import cli
from traindx.core.codec import decode, encode
from traindx.env import drivers
from traindx.env.facts import Device, Drift, Driver, Facts, Lock, Proof, TorchFacts
from traindx.env.gather import ask_torch, nvidia_from_module, nvidia_from_smi
from traindx.env.judging import is_sound, problems
from traindx.env.locks import compare, find, lock_at
from traindx.env.report import document, render

WORKS = Proof(softmax_sums=True, step=True)
CPU = Device("cpu", name="x86", proof=WORKS)
LOCKED = Lock("requirements.txt", checked=3)
ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90")


def machine(**changes) -> Facts:
    """A sound Linux machine with torch for CUDA 12.8, driver 570 and one A100; the arguments change it."""
    torch = TorchFacts("2.8.0+cu128", cuda="12.8", available=("cuda",), architectures=ARCHITECTURES, threads=8)
    a100 = Device("cuda", 0, "NVIDIA A100", 80 * 2**30, "8.0", WORKS)
    sound = Facts(python="3.11.7", system="Linux", machine="x86_64", cores=8, torch=torch, devices=(CPU, a100), lock=LOCKED,
                  drivers=(Driver("nvidia", "570.86.10", ("NVIDIA A100",)),), packages={"torch": "2.8.0+cu128"})
    return dataclasses.replace(sound, **changes)


def torch_of(**changes) -> TorchFacts:
    return dataclasses.replace(machine().torch, **changes)


def said(facts: Facts) -> dict[str, str]:
    return {problem.id: problem.level for problem in problems(facts)}


def test_a_sound_machine_has_nothing_to_say():
    assert said(machine()) == {}
    assert "Sound" in render(machine(), [], "en") and "A100" in render(machine(), [], "en")


BARE = {"torch": TorchFacts("2.8.0+cpu", threads=8), "devices": (CPU,), "packages": {"torch": "2.8.0+cpu"}}
A770 = Device("xpu", 0, "Intel Arc A770", 16 * 2**30, None, WORKS)
MI250 = Device("rocm", 0, "AMD Instinct MI250", 64 * 2**30, "gfx90a", WORKS)
ROCM = {"torch": TorchFacts("2.8.0+rocm6.4", hip="6.4", architectures=("gfx90a", "gfx942"), threads=8), "devices": (CPU, MI250),
        "drivers": (Driver("amd", "6.12.12", ("ip discovery",)),), "packages": {"torch": "2.8.0+rocm6.4"}}
MAC = {"system": "Darwin", "machine": "arm64", "torch": TorchFacts("2.8.0", mps_built=True, available=("mps",), threads=8),
       "devices": (CPU, Device("mps", 0, "Apple GPU", proof=WORKS)), "drivers": (), "packages": {"torch": "2.8.0"}}


@pytest.mark.parametrize(("changes", "expected"), [
    (BARE, {"cpu-build": "broken"}),  # a working driver, and a CPU build
    (BARE | {"drivers": ()}, {}),
    (BARE | {"variables": {"CUDA_VISIBLE_DEVICES": ""}}, {"gpus-hidden": "note"}),  # meant so
    (BARE | {"drivers": (Driver("amd", "6.12", ("gfx",)),)}, {"cpu-build": "broken"}),
    ({"drivers": (Driver("nvidia", "470.82.01", ("T4",)),), "devices": (CPU,)}, {"driver-old": "broken"}),
    ({"drivers": (Driver("nvidia", "535.104.05", ("A100",)),)}, {"driver-minor": "note"}),
    ({"drivers": (Driver("nvidia", "570.86.10", ("A100",)),), "torch": torch_of(cuda="13.0"), "devices": (CPU,)}, {"driver-old": "broken"}),
    ({"drivers": (Driver("nvidia", "580.65.06", ("A100",)),), "torch": torch_of(cuda="13.0")}, {}),
    ({"drivers": (Driver("nvidia", "580.65.06", ("A100",)),), "torch": torch_of(cuda="11.8")}, {}),  # drivers serve older builds
    ({"drivers": (Driver("nvidia", "516.94", ("RTX",)),), "system": "Windows", "devices": (CPU,)}, {"driver-old": "broken"}),
    ({"drivers": (Driver("nvidia", "9.0", ("A100",)),), "torch": torch_of(cuda="99.0")}, {}),  # not in the table: nothing is claimed
    ({"drivers": (), "devices": (CPU,)}, {"no-gpu": "note"}),
    ({"drivers": (Driver("nvidia", error="Driver/library version mismatch"),), "devices": (CPU,)}, {"driver-broken": "broken"}),
    ({"devices": (CPU,), "torch": torch_of(why_no_device="Error 802: system not yet initialized")}, {"no-device": "broken"}),
    ({"devices": (CPU,), "variables": {"CUDA_VISIBLE_DEVICES": "-1"}}, {"gpus-hidden": "note"}),
    ({"variables": {"CUDA_VISIBLE_DEVICES": "0,4"}}, {"visible-devices": "broken"}),
    ({"variables": {"CUDA_VISIBLE_DEVICES": "GPU-5fd4"}}, {}),
    ({"devices": (CPU, *(Device("cuda", i, "A100", capability="8.0", proof=WORKS) for i in range(4)))}, {"several-gpus": "note"}),
    ({"devices": (CPU, *(Device("cuda", i, "A100", capability="8.0", proof=WORKS) for i in range(2))),
      "variables": {"CUDA_VISIBLE_DEVICES": "0,1"}, "drivers": (Driver("nvidia", "570.86", ("A100",) * 8),)}, {}),
    ({"devices": (CPU, Device("cuda", 0, "RTX 5090", capability="12.0", proof=WORKS))}, {"architecture": "broken"}),
    ({"devices": (CPU, Device("cuda", 0, "Tesla K80", capability="3.7", proof=WORKS))}, {"architecture": "broken"}),
    ({"devices": (CPU, Device("cuda", 0, "A100", proof=Proof(how="crashed", error="exit status -11")))}, {"device-fails": "broken"}),
    ({"devices": (CPU, Device("cuda", 0, "A100", proof=Proof(how="hung", error="no answer")))}, {"device-fails": "broken"}),
    ({"devices": (CPU, Device("cuda", 0, "A100", proof=Proof(softmax_sums=False, step=True)))}, {"device-wrong": "broken"}),
    (ROCM, {}),
    (ROCM | {"variables": {"HSA_OVERRIDE_GFX_VERSION": "9.0.10"}}, {"gfx-override": "warning"}),
    (ROCM | {"devices": (CPU, dataclasses.replace(MI250, capability="gfx1103"))}, {"architecture": "broken"}),
    (ROCM | {"drivers": (), "devices": (CPU,)}, {"no-gpu": "note"}),
    (ROCM | {"drivers": (Driver("nvidia", "570.1", ("A100",)),), "devices": (CPU,)}, {"other-build": "broken"}),
    (MAC, {"mps": "note"}),
    (MAC | {"translated": True}, {"mps": "note", "python-translated": "warning"}),
    (BARE | {"torch": TorchFacts("2.8.0+xpu", xpu="20250101", threads=8), "devices": (CPU, A770), "drivers": (), "packages": {}}, {}),
    (BARE | {"torch": TorchFacts("2.8.0+xpu", xpu="20250101", threads=8), "drivers": (), "packages": {}}, {"no-gpu": "note"}),
    ({"torch": TorchFacts(error="No module named 'torch'"), "devices": ()}, {"torch-missing": "broken"}),
    ({"python": "3.9.2"}, {"python-old": "broken"}),
    ({"packages": {"torch": "2.5.1"}}, {"torch-twice": "warning"}),
    ({"cores": 4}, {"threads": "warning"}),
    ({"shared_memory_bytes": 64 * 2**20}, {"shared-memory": "warning"}),
    ({"virtual": False}, {"python-system": "note"}),
    ({"variables": {"CUDA_LAUNCH_BLOCKING": "1"}}, {"launch-blocking": "note"}),
    ({"lock": None}, {"no-lock": "warning"}),
    ({"lock": Lock("uv.lock", drift=(Drift("torch", "2.1.0", "2.8.0"),))}, {"drift": "broken"}),
    ({"lock": Lock("uv.lock", missing=(Drift("tqdm", "4.0", None),))}, {"lock-missing": "warning"}),
    ({"lock": Lock("uv.lock", error="not TOML")}, {"lock-unreadable": "broken"}),
])
def test_machines(changes, expected):
    facts = machine(**changes)
    assert said(facts) == expected
    assert is_sound(problems(facts)) == ("broken" not in expected.values())
    for problem in problems(facts):
        assert problem.what.en and problem.what.zh and problem.fix.en and problem.fix.zh
        assert "{" not in problem.what.en + problem.what.zh + problem.fix.en + problem.fix.zh
    again = decode(Facts, json.loads(json.dumps(encode(facts))))
    assert said(again) == expected, "facts that were written down are judged alike"
    for language in ("en", "zh"):
        assert all(problem.fix.say(language)[:5] in render(facts, problems(facts), language) for problem in problems(facts))


def test_the_reason_names_its_usual_cure():
    facts = machine(devices=(CPU,), torch=torch_of(why_no_device="CUDA error 803: system has unsupported display driver"))
    assert "restart the machine" in problems(facts)[0].fix.en
    old = machine(drivers=(Driver("nvidia", "470.82.01", ("T4",)),), devices=(CPU,))
    assert "525.60 or newer" in problems(old)[0].what.en and "11.x" in problems(old)[0].fix.en


@pytest.mark.parametrize(("built", "capability", "runs"), [
    (ARCHITECTURES, "8.6", True), (ARCHITECTURES, "8.9", True), (ARCHITECTURES, "6.1", False), (ARCHITECTURES, "10.0", False),
    (("sm_80", "compute_80"), "10.0", True), (("compute_90",), "8.0", False), (("sm_90a",), "9.0", True), (("sm_90a",), "9.1", False),
    (("sm_86",), "8.0", False), (("sm_100", "sm_120"), "12.0", True), (("sm_103f",), "10.3", True), ((), "9.0", True),
])
def test_kernels_for_an_architecture(built, capability, runs):
    assert drivers.runs_on(built, capability) is runs


def test_newest_cuda_of_a_driver():
    assert [drivers.newest_for(d, "Linux") for d in ("580.65.06", "579.1", "525.60.13", "450.80.02", "390.1")] == ["13.x", "12.x", "12.x", "11.x", None]


def test_what_nvidia_smi_says():
    out = "550.54.15, NVIDIA A100-SXM4-80GB\n550.54.15, NVIDIA A100-SXM4-80GB\n"
    assert nvidia_from_smi(out, None) == Driver("nvidia", "550.54.15", ("NVIDIA A100-SXM4-80GB",) * 2)
    assert nvidia_from_smi("No devices were found\n", "exit status 6") is None
    mismatch = nvidia_from_smi("Failed to initialize NVML: Driver/library version mismatch\n", "exit status 18")
    assert mismatch.error == "Failed to initialize NVML: Driver/library version mismatch"
    assert nvidia_from_smi("", "timed out").error == "timed out"
    assert nvidia_from_module("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19").version == "535.129.03"


# -- the child that asks torch ----------------------------------------------------------------------------------------------------

CHILD = """
import json, os, sys
say = lambda what, **fields: print(json.dumps({"what": what, **fields}), flush=True)
say("torch", version="9.9", cuda="12.8")
print("a driver that chatters")
for where in ("cpu", "cuda:0", "cuda:1"):
    say("device", where=where, kind=where.split(":")[0], name=where)
    if where in sys.argv: continue
    if where == "cuda:0": HOW
    say("proof", where=where, softmax_sums=True, step=True, how="done")
"""


@pytest.mark.parametrize(("how", "expected"), [("os.abort()", "crashed"), ("__import__('time').sleep(60)", "hung"), ("sys.exit(3)", "crashed")])
def test_a_driver_that_crashes_takes_nothing_else_down(how, expected, tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD.replace("HOW", how))
    torch, devices = ask_torch(2.0, [sys.executable, str(script)])
    assert torch.version == "9.9" and [device.proof.how for device in devices] == ["done", expected, "done"]
    assert not devices[1].proof.step and devices[2].proof.step


def test_a_torch_that_kills_python_is_told(tmp_path):
    script = tmp_path / "child.py"
    script.write_text("import os; os.abort()")
    torch, devices = ask_torch(5.0, [sys.executable, str(script)])
    assert torch.version is None and torch.error and devices == []


# -- lock files ---------------------------------------------------------------------------------------------------------------------

INSTALLED = {"torch": "2.8.0+cu128", "numpy": "2.1.0", "scikit-learn": "1.5.0", "tqdm": "4.66.1"}


def drifts(file: Path) -> dict[str, tuple[str, str | None]]:
    lock = compare(file, INSTALLED)
    assert lock.error is None
    return {d.package: (d.locked, d.installed) for d in (*lock.drift, *lock.missing)}


def test_requirements(tmp_path):
    (tmp_path / "base.txt").write_text("tqdm==4.66.1\n")
    file = tmp_path / "requirements.txt"
    file.write_text("""\ufeff# comment
--index-url https://example.org/simple
-r base.txt
torch==2.8.0            # any build
Scikit_Learn==1.4.2 \\
    --hash=sha256:abc --hash=sha256:def
numpy==2.*
pywin32==300 ; sys_platform == 'win32'
absent[extra]==1.0 ; python_version > '3'
pandas>=2
./local
-e git+https://example.org/x.git#egg=x
name @ https://example.org/name.whl
""")
    assert drifts(file) == {"scikit-learn": ("1.4.2", "1.5.0"), "absent": ("1.0", None)}
    lock = compare(file, INSTALLED)
    assert (lock.checked, lock.unpinned) == (4, 2)  # pandas, and the one that comes from a URL


def test_a_local_version_in_the_lock_counts(tmp_path):
    file = tmp_path / "requirements.txt"
    file.write_text("torch==2.8.0+cpu\n")
    assert drifts(file) == {"torch": ("2.8.0+cpu", "2.8.0+cu128")}


def test_requirements_that_include_each_other_end(tmp_path):
    (tmp_path / "requirements.txt").write_text("-r requirements.txt\nnumpy==2.1.0\n")
    assert drifts(tmp_path / "requirements.txt") == {}


UV = """
version = 1
[[package]]
name = "project"
version = "0.1.0"
source = { editable = "." }
dependencies = [{ name = "torch" }, { name = "absent" }, { name = "windows", marker = "sys_platform == 'win32'" }]
[package.dev-dependencies]
dev = [{ name = "pytest" }]
[[package]]
name = "torch"
version = "2.8.0"
resolution-markers = ["sys_platform == 'darwin'"]
[[package]]
name = "torch"
version = "2.7.0+cu126"
resolution-markers = ["sys_platform == 'linux'", "sys_platform == 'win32'"]
dependencies = [{ name = "deep" }]
[[package]]
name = "deep"
version = "3"
[[package]]
name = "absent"
version = "1.0"
[[package]]
name = "windows"
version = "1.0"
[[package]]
name = "pytest"
version = "8.0"
[[package]]
name = "numpy"
version = "2.1.0"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the fork of the lock that is checked is Linux's")
def test_uv_lock(tmp_path):
    file = tmp_path / "uv.lock"
    file.write_text(UV)
    assert drifts(file) == {"torch": ("2.7.0+cu126", "2.8.0+cu128"), "absent": ("1.0", None), "deep": ("3", None)}


def test_poetry_lock(tmp_path):
    file = tmp_path / "poetry.lock"
    file.write_text("""
[[package]]
name = "numpy"
version = "1.26.4"
optional = false
groups = ["main"]
[[package]]
name = "absent"
version = "1"
groups = ["main"]
[[package]]
name = "black"
version = "1"
groups = ["dev"]
[[package]]
name = "extra"
version = "1"
optional = true
groups = ["main"]
[[package]]
name = "colorama"
version = "1"
groups = ["main"]
markers = "sys_platform == 'win32'"
[[package]]
name = "of-an-old-poetry"
version = "1"
""")
    assert drifts(file) == {"numpy": ("1.26.4", "2.1.0"), "absent": ("1", None)}


def test_pylock(tmp_path):
    file = tmp_path / "pylock.toml"
    file.write_text("""
lock-version = "1.0"
[[packages]]
name = "tqdm"
version = "4.1"
[[packages]]
name = "absent"
version = "1"
[[packages]]
name = "pytest"
version = "8"
marker = "'dev' in dependency_groups"
[[packages]]
name = "colorama"
version = "1"
marker = "sys_platform == 'win32'"
[[packages]]
name = "from-a-folder"
""")
    assert drifts(file) == {"tqdm": ("4.1", "4.66.1"), "absent": ("1", None)}


def test_conda(tmp_path, monkeypatch):
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    file = tmp_path / "environment.yml"
    file.write_text("""name: x
channels:
  - pytorch=not-a-package
dependencies:
  - python>=3.10   # any
  - pytorch::pytorch=2.8
  - numpy=1.26=py311_0
  - cudatoolkit=11.8
  - pip
  - pip:
    - tqdm==4.0
    - "scikit-learn==1.5.0"
  - libblas
variables:
  - a=1
""")
    assert drifts(file) == {"numpy": ("1.26.*", "2.1.0"), "tqdm": ("4.0", "4.66.1")}


@pytest.mark.parametrize(("name", "text"), [
    ("uv.lock", "not [ toml"), ("uv.lock", "package = 3"), ("poetry.lock", '[[package]]\nversion = "1"'), ("pylock.toml", "\x00"),
])
def test_a_broken_lock_is_told(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    assert compare(tmp_path / name, INSTALLED).error


def test_which_lock_is_taken(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert find(inner) is None
    (tmp_path / "requirements.txt").write_text("numpy>=1\n")
    assert find(inner) is None, "without a pin it locks nothing"
    (tmp_path / "requirements-dev.txt").write_text("numpy==2.1.0\n")
    assert find(inner).name == "requirements-dev.txt"
    (tmp_path / "uv.lock").write_text("version = 1\n")
    assert find(inner).name == "uv.lock"
    (inner / "environment.yml").write_text("dependencies:\n  - numpy=2.1\n")
    assert find(inner).name == "environment.yml", "the nearest folder wins"
    assert lock_at(inner, INSTALLED, tmp_path / "uv.lock").file.endswith("uv.lock")


# -- this machine, for real -----------------------------------------------------------------------------------------------------------

def test_this_machine(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("torch==0.0.1\n")
    status = cli.main(["env", "--json", "out.json", "--snapshot", "snap.json", "--lang", "en"])
    said = capsys.readouterr().out
    document_ = json.loads((tmp_path / "out.json").read_text())
    assert status == 1 and document_["ok"] is False and document_["lock"]["drift"][0]["locked"] == "0.0.1"
    cpu = document_["devices"][0]
    assert cpu["kind"] == "cpu" and cpu["memory_bytes"] > 0 and cpu["proof"]["softmax_sums"] and cpu["proof"]["step"]
    assert "torch" in said and "(locked: 0.0.1)" in said
    facts = decode(Facts, json.loads((tmp_path / "snap.json").read_text()))
    assert facts.packages["torch"] and facts.torch.version and document(facts, problems(facts), "en")["ok"] is False


def test_wrong_options(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["env", "--lock", "none.lock", "--lang", "en"]) == 2
    assert "none.lock: no such file" in capsys.readouterr().err
