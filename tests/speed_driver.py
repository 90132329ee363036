"""Timed runs in a fork of the test process, where torch is already imported; all else is as ``traindx speed`` does it."""
from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path

import torch
import torch._dynamo  # else every child imports it at its first optimizer

from traindx.core.speed import Load
from traindx.core.trials import Budget, Gauge, Program, Trace, Trial
from traindx.experiments.bench import Silent
from traindx.perform.timing import perform
from traindx.speed.answering import Speeding
from traindx.speed.asking import FIRST, STEPS, Asker, _answer

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)


def forked(trial: Trial, folder: Path, seconds: float) -> Trace:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            ours = os.getpid()

            def send(message):
                if os.getpid() == ours:
                    os.write(writing, (json.dumps(message) + "\n").encode())
            perform(trial, send, folder)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    guard = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    guard.start()
    trace = Trace()
    with os.fdopen(reading) as lines:
        for line in lines:
            trace.take(json.loads(line))
    os.waitpid(child, 0)
    guard.cancel()
    trace.output = (folder / "output.txt").read_text()
    return trace


class Forking(Asker):
    """An asker without an engine. ``asked``: the jobs, in order."""

    def __init__(self, program: Program, folder: Path, seconds: float = 60.0) -> None:
        super().__init__(program, seconds)
        self.folder = folder
        self.asked: list[dict] = []

    def _once(self, job, variants):
        settings = {"first": FIRST, "seconds": self.seconds, **job, "variants": list(variants)}
        self.asked.append(settings)
        trial = Trial(self.program, tuple(variants.values()), (Gauge("timing", settings),), Budget(STEPS, 600))
        trace = forked(trial, self.folder, 300)
        if os.environ.get("TRAINDX_DEBUG"):
            sys.stderr.write(trace.output[-2000:])
        return _answer(trace, Load(2, 0.0, 0.0))


def speeding(script: Path, folder: Path, seconds: float = 60.0) -> Speeding:
    return Speeding(Forking(Program(script.name, cwd=str(script.parent)), folder, seconds), script.name, Silent(), any_load=True)
