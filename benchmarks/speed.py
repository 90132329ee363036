"""Seven planted bottlenecks and a program without one: what ``traindx speed`` says of each; its search of loader settings against a full grid.

    python benchmarks/speed.py planted [NAME ...]
    python benchmarks/speed.py search

Programs are in ``speed_programs``; the line that is to be named is marked ``# expect: rule``. Prints a table in Markdown, with the load.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
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
    done = subprocess.run([sys.executable, "-m", "traindx", "speed", "--quick", "--any-load", "--json", "-", path.name], cwd=path.parent,
                          capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode:
        return f"| {path.stem} | failed: {done.stderr.strip().splitlines()[-1]} | | | | {seconds:.0f} |"
    report = json.loads(done.stdout)
    lines = enumerate(path.read_text().splitlines(), 1)
    marks = [(line.split("# expect: ")[1].strip(), number) for number, line in lines if "# expect: " in line]
    said = [(found["rule"], found["where"]["line"], found["level"]) for found in report["findings"] if found["where"]]
    named = all((rule, line) in [one[:2] for one in said] for rule, line in marks)
    others = sorted({rule for rule, _, level in said if level == "warning"} - {rule for rule, _ in marks})
    expected = ", ".join(f"{rule}, line {line}" for rule, line in marks) or "nothing"
    return f"| {path.stem} | {report['verdict']} | {expected} | {'yes' if named else 'no'} | {', '.join(others) or 'none'} | {seconds:.0f} |"


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
    {"planted": lambda: planted(sys.argv[2:]), "search": search}[sys.argv[1]]()
