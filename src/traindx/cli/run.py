"""``traindx run``."""
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from traindx.core.judge import judge
from traindx.launch import command_for, launch


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json")
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        outcome = launch(command_for(options.script, None, options.args), Path(folder),
                         {"script": options.script, "max_steps": options.max_steps})
        report = judge(outcome.recording)
    for judged in report.findings:
        print(judged.level, judged.rule, judged.finding.where, judged.finding.cause.en, file=sys.stderr)
    if options.json:
        def row(j):
            w = j.finding.where
            return {"rule": j.rule, "level": j.level, "where": w and {"file": w.file, "line": w.line},
                    "also": [{"file": s.file, "line": s.line} for s in j.finding.also]}
        Path(options.json).write_text(json.dumps({"findings": [row(j) for j in report.findings]}))
    return outcome.status
