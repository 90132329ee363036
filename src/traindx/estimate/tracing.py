"""Asks the tracing child, without torch here: one process that stays for all questions about a program."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any
SECONDS = 120.0


@dataclass(frozen=True)
class Program:
    """What the user would type after ``python``."""

    script: str | None
    module: str | None = None
    args: Sequence[str] = ()
    cwd: str = field(default_factory=os.getcwd)


class Tracer:
    """``with Tracer(program) as tracer: tracer.trace(...)``. Answers are JSON values, see ``traced.child``."""

    def __init__(self, program: Program, seconds: float = SECONDS) -> None:
        self.program = program
        self.seconds = seconds
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Tracer:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._child = subprocess.Popen([sys.executable, "-m", "traindx.estimate.traced.child"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._child is not None:
            assert self._child.stdin is not None and self._child.stdout is not None
            self._child.stdin.close()
            self._child.stdout.close()
            self._child.wait()

    def trace(self, changes: dict[str, Json] | None = None, fake: bool = True, **settings: Json) -> Json:
        """One run of the program with changes (names and settings of ``traced.changes``)."""
        return self._ask({"changes": changes or {}, "fake": fake, **settings})

    def measure(self, **settings: Json) -> Json:
        """The program's own steps for real, by the allocator's record."""
        return self._ask({"measure": True, **settings})

    def _ask(self, question: Json) -> Json:
        assert self._child is not None and self._child.stdin is not None and self._child.stdout is not None
        program = {"script": self.program.script, "module": self.program.module, "args": list(self.program.args), "cwd": self.program.cwd}
        self._child.stdin.write(json.dumps({**program, "seconds": self.seconds, **question}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        return json.loads(line) if line else {"ended": "lost", "error": "the tracing process ended", "output": ""}
