"""The user's tracebacks and warnings stay the user's: without the frames that our wrappers put between the program and torch.

Cleaned where a traceback is shown, never where an exception passes: nothing that the program catches is changed.
``TRAINDX_DEBUG`` leaves them whole.
"""
from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from types import CodeType, FrameType, TracebackType
from typing import Any

from traindx.probes import patching, sites
from traindx.probes.session import Session

_DISPATCH = os.path.join("torch", "overrides.py")


def install(session: Session) -> None:
    if os.environ.get("TRAINDX_DEBUG"):
        return
    patching.replace(session.stack, sys, "excepthook", _hook)
    patching.replace(session.stack, threading, "excepthook", _thread_hook)
    patching.replace(session.stack, traceback.TracebackException, "__init__", _described)  # print_exc, logging, multiprocessing
    if hasattr(warnings, "_showwarnmsg"):  # where each passes, those of C++ too
        patching.replace(session.stack, warnings, "_showwarnmsg", _warned)


def clean(problem: BaseException | None) -> None:
    """The exception, and those that led to it."""
    waiting, seen = [problem], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = cleaned(one.__traceback__)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def cleaned(trace: TracebackType | None) -> TracebackType | None:
    """The same without our frames, as python alone would have it; as it is where nothing would be left."""
    kept: list[TracebackType] = []
    ours, entry = False, trace
    while entry is not None:
        code = entry.tb_frame.f_code
        if _is_wrapper(code):
            ours = True
        else:
            if ours:
                _drop_dispatch(kept, code)
            kept.append(entry)
            ours = False
        entry = entry.tb_next
    if ours:
        _drop_dispatch(kept, None)
    made = None
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made if kept else trace


def _is_wrapper(code: CodeType) -> bool:
    return sites.is_ours(code.co_filename) and not sites.is_user(code.co_filename)


def _drop_dispatch(kept: list[TracebackType], below: CodeType | None) -> None:
    """Torch asks our mode through ``handle_torch_function``, called by the function that then runs once more below us."""
    if kept and kept[-1].tb_frame.f_code.co_name == "handle_torch_function" and kept[-1].tb_frame.f_code.co_filename.endswith(_DISPATCH):
        kept.pop()
        if kept and kept[-1].tb_frame.f_code is below:
            kept.pop()


def _hook(original: Any) -> Any:
    def excepthook(kind: Any, value: Any, trace: Any) -> Any:
        with suppress(Exception):
            clean(value)
            trace = cleaned(trace)
        return original(kind, value, trace)
    return excepthook


def _thread_hook(original: Any) -> Any:
    def excepthook(args: Any) -> Any:
        with suppress(Exception):
            clean(args.exc_value)
        return original(args)
    return excepthook


def _described(original: Any) -> Any:
    def init(self: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, *args: Any, **kwargs: Any) -> None:
        with suppress(Exception):
            exc_traceback = cleaned(exc_traceback)
        original(self, exc_type, exc_value, exc_traceback, *args, **kwargs)
    return patching.dressed(init, original)


def _warned(original: Any) -> Any:
    def show(message: Any) -> Any:
        with suppress(Exception):
            if message.filename.endswith(_DISPATCH) or (sites.is_ours(message.filename) and not sites.is_user(message.filename)):
                message.filename, message.lineno = _called_from(sys._getframe(1)) or (message.filename, message.lineno)
        return original(message)
    return patching.dressed(show, original)


def _called_from(frame: FrameType | None) -> tuple[str, int] | None:
    """File and line above the innermost of our wrappers: where python alone would see the warning arise."""
    below: CodeType | None = None
    while frame is not None and not _is_between(frame.f_code):
        below, frame = frame.f_code, frame.f_back
    # torch asks our mode for a function, which then runs once more below us
    while frame is not None and (_is_between(frame.f_code) or frame.f_code is below):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def _is_between(code: CodeType) -> bool:
    return _is_wrapper(code) or code.co_filename.endswith(_DISPATCH)
