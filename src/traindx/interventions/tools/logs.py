"""The functions by which programs log, of those libraries that the program has loaded."""
from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from traindx.probes import patching

_ADDS = ("add_audio", "add_custom_scalars", "add_embedding", "add_figure", "add_graph", "add_hparams", "add_histogram", "add_image",
         "add_images", "add_mesh", "add_pr_curve", "add_scalar", "add_scalars", "add_text", "add_video", "flush")
LOGGERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("builtins", "", ("print",)), ("logging", "Logger", ("_log",)), ("torch", "", ("save",)),
    ("torch.utils.tensorboard.writer", "SummaryWriter", _ADDS), ("tensorboardX.writer", "SummaryWriter", _ADDS),
    ("wandb", "", ("log",)), ("wandb.sdk.wandb_run", "Run", ("log",)),
    ("mlflow", "", ("log_metric", "log_metrics", "log_artifact", "log_figure", "log_image")),
    ("matplotlib.figure", "Figure", ("savefig",)), ("PIL.Image", "Image", ("save",)), ("torchvision.utils", "", ("save_image",)),
    ("numpy", "", ("save", "savez", "savez_compressed", "savetxt")), ("json", "", ("dump",)), ("pickle", "", ("dump",)))


def install(stack: ExitStack, make: Callable[[Any, str], Any]) -> None:
    """``make(original, name)`` in the place of each, until the stack closes."""
    for module_name, owner_name, names in LOGGERS:
        module = sys.modules.get(module_name)
        owner = getattr(module, owner_name, None) if owner_name else module
        for name in names if owner is not None else ():
            shown = f"{owner_name or module_name}.{name}".removeprefix("builtins.")
            patching.replace(stack, owner, name, lambda original, shown=shown: make(original, shown))  # type: ignore[misc]
