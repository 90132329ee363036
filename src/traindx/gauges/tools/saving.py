"""Files that a program writes and reads of its own state: torch's and safetensors'."""
from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import torch

from traindx.probes import patching

Note = Callable[[Any, str | None], None]


def on_save(stack: ExitStack, note: Note) -> None:
    """``note(object, path)`` after each ``torch.save`` and each file of safetensors (there: the tensors by name, as None).
    The path is None where it went into memory. What ``note`` raises stays here: the program is not to notice."""
    def observed(original: Any) -> Any:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(obj, f, *args, **kwargs)
            with suppress(Exception):
                note(obj, path_of(f))
            return result
        return patching.dressed(save, original)
    patching.replace(stack, torch, "save", observed)
    if importlib.util.find_spec("safetensors") is None:
        return
    import safetensors.torch

    def written(original: Any) -> Any:
        def serialize_file(tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(tensors, filename, *args, **kwargs)
            with suppress(Exception):
                note(dict.fromkeys(tensors), path_of(filename))
            return result
        return patching.dressed(serialize_file, original)
    patching.replace(stack, safetensors.torch, "serialize_file", written)


def on_load(stack: ExitStack, note: Callable[[str | None], None]) -> None:
    """``note(path)`` after each ``torch.load``."""
    def observed(original: Any) -> Any:
        def load(f: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(f, *args, **kwargs)
            with suppress(Exception):
                note(path_of(f))
            return result
        return patching.dressed(load, original)
    patching.replace(stack, torch, "load", observed)


def path_of(file: Any) -> str | None:
    """Of a path or an open file; None for memory."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return os.path.realpath(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else None
