"""Nine planted bottlenecks and two programs without one: what ``traindx speed`` says of each; its search of loader settings against a full grid.

    python benchmarks/speed.py planted [NAME ...]
    python benchmarks/speed.py peers [NAME ...]
    python benchmarks/speed.py search

``peers`` asks train-doctor and TraceML too, where they are installed, about the same programs; TraceML also with the lines its manual asks for.

Programs are in ``speed_programs``; the line that is to be named is marked ``# expect: rule``. Prints a table in Markdown, with the load.
"""
from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = Path(__file__).parent / "speed_programs"
SAMPLE_SECONDS, BATCH, STEPS = 0.004, 8, 24

SLOW = f"""
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 4096
    def __getitem__(self, i):
        time.sleep({SAMPLE_SECONDS})
        return torch.randn(32), i % 10
net = nn.Linear(32, 10)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(100):
    for x, y in DataLoader(Slow(), batch_size={BATCH}):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
"""


def planted(names: list[str]) -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| program | verdict | expected | named | other warnings | seconds |\n|---|---|---|---|---|---|")
    for path in sorted(PROGRAMS.glob("*.py")):
        if not names or path.stem in names:
            print(row(path), flush=True)


def row(path: Path) -> str:
    began = time.monotonic()
    report = asked(path)
    seconds = time.monotonic() - began
    if isinstance(report, str):
        return f"| {path.stem} | failed: {report} | | | | {seconds:.0f} |"
    marks = marked(path)
    said = [(found["rule"], found["where"]["line"], found["level"]) for found in report["findings"] if found["where"]]
    named = all((rule, line) in [one[:2] for one in said] for rule, line in marks)
    others = sorted({rule for rule, _, level in said if level == "warning"} - {rule for rule, _ in marks})
    expected = ", ".join(f"{rule}, line {line}" for rule, line in marks) or "nothing"
    return f"| {path.stem} | {report['verdict']} | {expected} | {'yes' if named else 'no'} | {', '.join(others) or 'none'} | {seconds:.0f} |"


def asked(path: Path) -> dict | str:
    """What traindx says of it as JSON; else why it failed."""
    done = subprocess.run([sys.executable, "-m", "traindx", "speed", "--quick", "--any-load", "--json", "-", path.name], cwd=path.parent,
                          capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else json.loads(done.stdout)


def marked(path: Path) -> list[tuple[str, int]]:
    lines = enumerate(path.read_text().splitlines(), 1)
    return [(line.split("# expect: ")[1].strip(), number) for number, line in lines if "# expect: " in line]


# -- peers --------------------------------------------------------------------------------------------------------------

def peers(names: list[str]) -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| program | line | " + " | ".join(PEERS) + " |\n|---|---" + "|---" * len(PEERS) + "|")
    for path in sorted(PROGRAMS.glob("*.py")):
        if not names or path.stem in names:
            lines = [line for _, line in marked(path)]
            told = " | ".join(answered(ask, path, lines) for ask in PEERS.values())
            print(f"| {path.stem} | {', '.join(map(str, lines)) or '-'} | {told} |", flush=True)


def answered(ask: Callable[[Path], tuple[str, str] | None], path: Path, lines: list[int]) -> str:
    """Of a copy of the program, for peers write beside it: the verdict, and whether the planted line is anywhere in what was said."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            answer = ask(Path(shutil.copy(path, folder)))
        except (subprocess.SubprocessError, ValueError, LookupError, OSError) as problem:
            return f"failed: {type(problem).__name__}"
    if answer is None:
        return "not installed"
    verdict, said = answer
    named = all(f"{path.name}:{line}" in said or f"line {line}" in said for line in lines)
    return verdict + ("" if not lines else ", line named" if named else ", no line")


def traindx(path: Path) -> tuple[str, str]:
    report = asked(path)
    if isinstance(report, str):
        raise ValueError(report)
    said = [f"{found['where']['file']}:{found['where']['line']}" for found in report["findings"] if found["where"]]
    return report["verdict"], " ".join(said)


def train_doctor(path: Path) -> tuple[str, str] | None:
    if importlib.util.find_spec("train_doctor") is None:
        return None
    main = [sys.executable, "-c", "from train_doctor.cli import main; main()"]
    run(path, [*main, "profile", "--", sys.executable, path.name])
    said = run(path, [*main, "diagnose", "--json"])
    return ", ".join(found["id"] for found in json.loads(said)["findings"]) or "nothing found", said


def traceml(path: Path) -> tuple[str, str] | None:
    if importlib.util.find_spec("traceml_ai") is None:
        return None
    run(path, [sys.executable, "-c", "from traceml_ai.launcher.cli import main; main()", "run", path.name])
    said = next(path.parent.glob("logs/*/final_summary.json")).read_text()
    return json.loads(said)["primary_diagnosis"]["status"].lower(), said


def traceml_with_steps(path: Path) -> tuple[str, str] | None:
    """With ``init`` and the body of the training loop in ``trace_step``, as its manual says; statements keep their order, not their lines."""
    tree = ast.parse(path.read_text())
    loop = [node for node in ast.walk(tree) if isinstance(node, ast.For) and "optimizer.step()" in ast.unparse(node)][-1]
    model = "model" if "model = " in path.read_text() else "cell"
    step = ast.parse(f"with traceml_ai.trace_step({model}):\n    pass").body[0]
    assert isinstance(step, ast.With)
    step.body, loop.body = loop.body, [step]
    path.write_text("import traceml_ai\ntraceml_ai.init(mode='auto')\n" + ast.unparse(tree))
    return traceml(path)


def run(path: Path, command: list[str]) -> str:
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=True, timeout=600).stdout


PEERS = {"traindx": traindx, "train-doctor": train_doctor, "TraceML": traceml, "TraceML, with trace_step": traceml_with_steps}


def search() -> None:
    """The best that the search found, timed by it, beside every setting timed over whole loops of the loader."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(SLOW)
        done = subprocess.run([sys.executable, "-m", "traindx", "speed", "--any-load", "--json", "-", "train.py"], cwd=folder,
                              capture_output=True, text=True, check=True)
    trials = [trial for trial in json.loads(done.stdout)["trials"] if trial["step"] == "data"]
    rates = {(workers, prefetch): grid_rate(workers, prefetch) for workers in range((os.cpu_count() or 1) + 1) for prefetch in (2, 4, 8)
             if workers or prefetch == 2}
    best = max(rates.values())
    print(f"search: {[(trial['change'], trial['ratio'], trial['pairs']) for trial in trials]}\n")
    print("| workers | prefetch | steps a second | of the best |\n|---|---|---|---|")
    for (workers, prefetch), rate in rates.items():
        print(f"| {workers} | {prefetch} | {rate:.1f} | {rate / best:.2f} |")


def grid_rate(workers: int, prefetch: int) -> float:
    """Steps a second, once the pipeline is filled."""
    options = f", num_workers={workers}, prefetch_factor={prefetch}" if workers else ""
    source = SLOW.replace(f"batch_size={BATCH}", f"batch_size={BATCH}{options}").replace(
        "        opt.step()", f"        opt.step()\n        ticks.append(time.perf_counter())\n        if len(ticks) == {STEPS}:\n"
        f"            print(({STEPS} - 9) / (ticks[-1] - ticks[8]))\n            raise SystemExit").replace("net = ", "ticks = []\nnet = ")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(source)
        file.flush()
        done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    {"planted": lambda: planted(sys.argv[2:]), "peers": lambda: peers(sys.argv[2:]), "search": search}[sys.argv[1]]()
