"""What the program logs, prints and saves is not logged, printed or saved: what a step takes without it.

Libraries are known by name (``tools/logs.py``). Those that the program loads later than this is put on are not skipped.
"""
from __future__ import annotations

from typing import Any

from traindx.core.text import Text
from traindx.interventions.tools import logs
from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Switched
from traindx.probes import patching


class SkipLogging(Switched):
    """Each function returns None at once."""

    NOTHING = Text("The program logged, printed and saved nothing by a function that is known.",
                   "没有看到程序用已知的函数写日志、打印或保存。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._installed = False

    def install(self) -> None:
        if self.on:
            self._put_on()

    def switch(self, on: bool) -> None:
        """Put on when it is first wanted: by then the program has loaded its libraries."""
        super().switch(on)
        if on:
            self._put_on()

    def on_tick(self, step: int) -> None:
        if self.on and step == 1:
            self._installed = False
            self._put_on()  # with what was loaded since

    def _put_on(self) -> None:
        if not self._installed:
            self._installed = True
            logs.install(self.stack, self._skipped)

    def _skipped(self, original: Any, name: str) -> Any:
        if hasattr(original, "_traindx_skipped"):
            return original

        def skipped(*args: Any, **kwargs: Any) -> Any:
            if not self.on or not self.stage.watching:
                return original(*args, **kwargs)
            self.touch()
            return None
        dressed = patching.dressed(skipped, original)
        dressed._traindx_skipped = True
        return dressed
