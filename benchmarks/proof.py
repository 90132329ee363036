"""Which findings on known programs are proved by their experiments? Nothing may be proved on a healthy one.

    python benchmarks/proof.py CASES [--write FILE] [--only NAME ...]

CASES is a folder of ``bad_*`` and ``good_*`` programs with a ``case.toml`` (``expect``: the rules that name the fault).
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tomllib


def proofs_of(case: Path) -> list[dict[str, Any]]:
    """The findings of ``traindx run --prove``, refuted ones last."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "traindx", "run", "--no-record", "--prove", "--json", str(report), "train.py"]
        subprocess.run(command, cwd=case, capture_output=True, check=False, timeout=900)
        found = json.loads(report.read_text(encoding="utf-8"))
    return [*found["findings"], *found.get("refuted", [])]


def row(case: Path) -> dict[str, Any]:
    expect = tomllib.loads((case / "case.toml").read_text(encoding="utf-8")).get("expect", [])
    began = time.monotonic()
    findings = proofs_of(case)
    told = [f for f in findings if f["level"] != "note" and (f["rule"] in expect or not expect)]
    proofs = [(f["rule"], f["experiment"], (f["proof"] or {}).get("outcome"), f["proof"] or {}) for f in told]
    outcomes = [outcome for _, _, outcome, _ in proofs]
    best = next((word for word in ("proved", "undecided", "refuted") if word in outcomes), "no experiment" if told else "not found")
    shown = next((p for p in proofs if p[2] == best), proofs[0] if proofs else ("-", None, None, {}))
    proof = shown[3]
    return {"case": case.name, "rule": shown[0], "experiment": shown[1] or "-", "outcome": best, "effect": proof.get("effect"),
            "spread": proof.get("spread"), "why": proof.get("why", ""), "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    rows = []
    for case in sorted(path for path in options.cases.iterdir() if (path / "train.py").is_file()):
        if options.only and case.name not in options.only:
            continue
        rows.append(row(case))
        print(*(rows[-1][key] for key in ("outcome", "case", "rule", "experiment", "effect", "seconds", "why")), sep="  ", flush=True)
    bad = [r for r in rows if r["case"].startswith("bad") and r["outcome"] not in ("no experiment", "not found")]
    proved = sum(r["outcome"] == "proved" for r in bad)
    false = sum(r["outcome"] == "proved" for r in rows if r["case"].startswith("good"))
    summary = f"proved {proved} of {len(bad)} with an experiment; proved on healthy programs: {false}"
    print(summary)
    if options.write:
        heads = ("case", "rule", "experiment", "outcome", "effect", "spread", "seconds")
        lines = ["| " + " | ".join(str(cell if cell is not None else "-") for cell in cells) + " |"
                 for cells in (heads, ["---"] * len(heads), *([r[h] for h in heads] for r in rows))]
        options.write.write_text("\n".join([*lines, "", summary, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
