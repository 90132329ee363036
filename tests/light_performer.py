"""A performer without torch, for tests of processes: the script calls ``step()`` itself."""
import builtins
import os
import runpy
import sys


def perform(trial, send, folder):
    count = 0

    def step():
        nonlocal count
        count += 1
        send({"step": {"step": count}})
        if count >= trial.budget.steps:
            send({"end": {"ended": "steps"}})
            os._exit(0)
    builtins.step = step
    sys.argv = [trial.program.script, *trial.program.args]
    runpy.run_path(trial.program.script, run_name="__main__")
