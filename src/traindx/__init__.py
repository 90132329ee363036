"""Find out why a PyTorch training does not work, and prove it.

``traindx run train.py`` watches an unmodified script. In a notebook or around a loop of your own::

    with traindx.watch() as dx:
        train()
    dx.report()
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx.watching import watch as watch

__version__ = "0.1.0"
__all__ = ["__version__", "watch"]


def __getattr__(name: str) -> Any:
    # torch is imported only when a training is really watched: `import traindx` stays quick.
    if name == "watch":
        from traindx.watching import watch
        return watch
    raise AttributeError(f"module 'traindx' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext traindx`` in IPython or a notebook: then ``%%traindx`` watches a cell."""
    from traindx.notebook import load
    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    from traindx.notebook import unload
    unload(shell)
