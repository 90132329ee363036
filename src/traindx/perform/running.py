"""Runs a script or module as ``python`` would: a new ``__main__``, its arguments, its folder first on the path."""
from __future__ import annotations

import os
import runpy
import sys
import traceback
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path

from traindx.core.trials import Program
from traindx.probes import sites


def run(program: Program) -> None:
    """Returns when the program has come to its end; its exceptions pass through, ``SystemExit`` too."""
    os.chdir(program.cwd)
    sys.path[:] = [path for path in sys.path if path]  # an empty entry is the folder of whoever started us
    if program.module is not None:
        sys.argv = [program.module, *program.args]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program.module, run_name="__main__", alter_sys=True)
    else:
        _run_script(str(program.script), program.args)


def _run_script(script: str, args: tuple[str, ...]) -> None:
    file = os.path.abspath(script)
    source = Path(file).read_bytes()
    sys.argv = [script, *args]
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=file, __builtins__=__builtins__, __cached__=None, __annotations__={},
                         __loader__=SourceFileLoader("__main__", file))
    sys.modules["__main__"] = main
    exec(compiled(source, file), main.__dict__)


def compiled(source: bytes, file: str) -> types.CodeType:
    code: types.CodeType = compile(source, file, "exec", dont_inherit=True)
    return code


def main_file(program: Program) -> str | None:
    """The file whose folder is the user's own; None for a module that cannot be found."""
    if program.module is None:
        return os.path.join(program.cwd, str(program.script))
    here = os.path.join(program.cwd, *program.module.split("."))
    return next((path for path in (here + ".py", os.path.join(here, "__main__.py")) if os.path.exists(path)), None)


def told(problem: BaseException) -> str:
    """``ValueError: ... (train.py:31)``: the exception with the last line of the user's own."""
    lines = [frame for frame in traceback.extract_tb(problem.__traceback__)
             if sites.is_user(frame.filename) and not sites.is_ours(frame.filename)]
    where = f" ({os.path.basename(lines[-1].filename)}:{lines[-1].lineno})" if lines else ""
    return f"{type(problem).__name__}: {problem}"[:500] + where
