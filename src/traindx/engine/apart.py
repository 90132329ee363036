"""Runs a program in the sandbox of controlled re-runs, in the foreground: its streams are ours, what it writes is gone at its end.

A process of its own between the launcher and the program: it makes the sandbox, enters it in a child that then becomes the
program, hands signals on, and cleans up.
"""
from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traindx.core.codec import decode, encode
from traindx.core.trials import Program
from traindx.engine import linux, processes
from traindx.engine.copying import TooLarge
from traindx.engine.places import places_of
from traindx.engine.quiet import OFFLINE, QUIET
from traindx.engine.sandbox import OWN, Mode, Sandbox, way_for
from traindx.launch import BOOT_SETTINGS, command_for, passing_signals_to

NOT_RUN = 2  # exit status
_START = "import sys; sys.path[:1] = []; sys.path.append(sys.argv.pop(1)); from traindx.engine.apart import main; sys.exit(main())"


def own_folder(folder: Path) -> Path:
    """Of a trial in ``folder``: what is written here stays."""
    return folder / OWN


def command(program: Program, folder: Path, network: bool, environment: Mapping[str, str], only: Mode | None = None) -> list[str]:
    """Starts the program in a sandbox in ``folder``; ``environment`` is what it gets beyond ours, ``only`` one way to keep it apart."""
    request = {"program": encode(program), "folder": str(folder.resolve()), "network": network, "environment": dict(environment), "only": only}
    return [sys.executable, "-c", _START, str(Path(__file__).parents[2]), json.dumps(request)]


def main() -> int:
    status = _apart(json.loads(sys.argv[1]))
    if status < 0:
        _die_of(-status)
    return status


def _apart(request: dict[str, Any]) -> int:
    """The program's exit status; of one that a signal has ended, its negative number."""
    program, folder, network = decode(Program, request["program"]), request["folder"], request["network"]
    os.makedirs(folder, exist_ok=True)
    way = way_for(program, folder, request["only"])
    if way is None:
        sys.stderr.write(f"traindx: not run (the sandbox {request['only']!r} does not work on this system)\n")
        return NOT_RUN
    sandbox = Sandbox(way, places_of(program), folder, network)
    linux.adopt_orphans()
    try:
        sandbox.prepare()
        return _run(sandbox, sandbox.program(program), request["environment"])
    except (OSError, TooLarge) as problem:
        sys.stderr.write(f"traindx: not run ({type(problem).__name__}: {problem})\n")
        return NOT_RUN
    finally:
        processes.end_all_below(os.getpid())
        sandbox.clean()


def _run(sandbox: Sandbox, program: Program, environment: dict[str, str]) -> int:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            linux.die_with_parent(signal.SIGKILL, parent)
            _become(sandbox, program, environment)
        except BaseException as problem:
            sys.stderr.write(f"traindx: not run ({type(problem).__name__}: {problem})\n")
        finally:
            os._exit(NOT_RUN)
    with passing_signals_to(child):
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _become(sandbox: Sandbox, program: Program, environment: dict[str, str]) -> None:
    os.environ |= QUIET | ({} if sandbox.network else OFFLINE) | environment
    sandbox.enter()
    if sandbox.way.mode == "guard":
        os.environ[BOOT_SETTINGS] = _with_guard(os.environ[BOOT_SETTINGS], sandbox)
    words = command_for(program.script, program.module, program.args)
    os.execv(words[0], words)


def _with_guard(settings: str, sandbox: Sandbox) -> str:
    """The guard holds in the process that puts it on: the watched interpreter does so first."""
    first: list[Any] = ["traindx.engine.guard", "install_guard", [sandbox.folder, sandbox.network]]
    return json.dumps({**json.loads(settings), "first": first})


def _die_of(number: int) -> None:
    """Ends as the program did, so that whoever waits for us sees it."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
