"""Inside the watched process: waits until the script imports torch, then puts the probes on."""
from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_began = time.perf_counter()
NOT_WATCHING = "boot"


def begin(settings_json: str) -> None:
    """Called once, before the script. ``settings``: folder of the recording, script, max_steps, looks, and what is to be
    called before all else (``first``: module, function, arguments)."""
    settings: dict[str, Any] = json.loads(settings_json)
    if first := settings.get("first"):
        module, function, arguments = first
        getattr(importlib.import_module(module), function)(*arguments)
    sys.meta_path.insert(0, _AfterTorch(settings))


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Lets torch be found as always, and acts when it has been imported."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            original = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                original(module)
                loader.exec_module = original
                _watch(self.settings)
            loader.exec_module = exec_module
        return spec


def _watch(settings: dict[str, Any]) -> None:
    try:
        from traindx.probes import launching, sites
        from traindx.probes.install import install
        from traindx.probes.recorder import Recorder
        if settings.get("script"):
            sites.main_script(settings["script"])
        session = install(Recorder(Path(settings["folder"])), settings.get("max_steps"), settings.get("looks"))
        session.began = _began
        launching.pass_on(session, {key: value for key, value in settings.items() if key != "rank"}, os.path.dirname(os.path.abspath(__file__)))
        if settings.get("rank") is not None:
            _leave_a_stack(settings["folder"])
    except Exception as problem:
        if os.environ.get("TRAINDX_DEBUG"):
            raise
        _not_watching(problem, settings["folder"])
        return
    atexit.register(_end, session)


def _leave_a_stack(folder: str) -> None:
    """A launcher ends ranks that hang by SIGTERM: where this one was is then written down, and the signal goes its way."""
    import faulthandler
    import signal
    if hasattr(faulthandler, "register") and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # a bare descriptor: a file that is open to the end would warn where the script shows ResourceWarnings
        file = os.open(Path(folder) / "stack.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        faulthandler.register(signal.SIGTERM, file=file, all_threads=True, chain=True)


def _not_watching(problem: Exception, folder: str) -> None:
    """Said at once, and kept for the report: silence must not look like a script that trains nothing."""
    from traindx.core.observed import ProbeFailed
    from traindx.core.recording import EVENTS, to_line
    error = f"{type(problem).__name__}: {problem}"
    sys.stderr.write(f"traindx: not watching ({error})\n")
    with open(Path(folder) / EVENTS, "a", encoding="utf-8") as file:
        file.write(to_line(ProbeFailed(probe=NOT_WATCHING, error=error)))


def _end(session: Any) -> None:
    from traindx.core.secrets import masked_text
    problem = getattr(sys, "last_value", None)
    how = "max-steps" if session.stopped else "raised" if problem is not None else "finished"
    error = masked_text(f"{type(problem).__name__}: {problem}"[:500]) if problem is not None else None
    session.end(how, error, problem)
