"""Which line of the user's program is running: the first frame that belongs neither to us nor to a library."""
from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable
from types import CodeType, FrameType

from traindx.core.observed import Site
from traindx.core.secrets import masked_text

_OURS = os.path.realpath(os.path.dirname(os.path.dirname(__file__))) + os.sep
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")), os.path.dirname(os.__file__)}
    if path
)
_user_files: dict[str, bool] = {}
_sites: dict[tuple[str, int], Site] = {}
_instructions: dict[tuple[int, int], tuple[CodeType, Site]] = {}  # by code and instruction; the code is kept so that its id stays its own
INSTRUCTIONS = 10_000
main_folder: str | None = None
naming: Callable[[str], str | None] | None = None  # names of files that are none: a notebook's cells


def is_user(filename: str) -> bool:
    """Whether code of this file is the user's own; cached, since it is asked for every frame."""
    known = _user_files.get(filename)
    if known is None:
        known = _user_files[filename] = _judge(filename)
    return known


def user_files() -> list[str]:
    """The user's files that have been met so far."""
    return [file for file, users in list(_user_files.items()) if users]


def is_ours(filename: str) -> bool:
    return filename.startswith(_OURS)


def _judge(filename: str) -> bool:
    if filename.startswith("<"):  # cells of a notebook are "<ipython-input...>", our own exec is never named so
        return filename.startswith("<ipython") or filename == "<string>"
    path = os.path.realpath(filename)
    if path.startswith(_OURS):  # unless the script itself lies among ours: a rule's bad.py
        return bool(main_folder and main_folder.startswith(_OURS) and path.startswith(main_folder))
    if main_folder and path.startswith(main_folder):
        return "site-packages" not in path[len(main_folder):] and "dist-packages" not in path[len(main_folder):]
    if "site-packages" in path or "dist-packages" in path:
        return False
    return not path.startswith(_LIBRARIES)


def main_script(path: str) -> None:
    """The user's script: its folder is the user's own wherever it lies."""
    global main_folder
    _user_files.clear()
    main_folder = os.path.dirname(os.path.realpath(path)) + os.sep


def here(depth: int = 1) -> Site | None:
    """The user's line that is running now, None where no frame is the user's (a library's own thread)."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        known = _user_files.get(code.co_filename)
        if known or (known is None and is_user(code.co_filename)):
            found = _instructions.get((id(code), frame.f_lasti))
            return found[1] if found is not None else of_frame(frame, code.co_filename)
        frame = frame.f_back
    return None


def raised_at(problem: BaseException | None) -> Site | None:
    """The user's innermost line in an exception's traceback."""
    found, trace = None, problem.__traceback__ if problem is not None else None
    while trace is not None:
        if is_user(trace.tb_frame.f_code.co_filename):
            found = trace
        trace = trace.tb_next
    return at(found.tb_frame.f_code.co_filename, found.tb_lineno, found.tb_frame.f_code.co_name) if found is not None else None


def of_frame(frame: FrameType, filename: str) -> Site:
    """Remembered by instruction: a frame works its line out anew each time."""
    code = frame.f_code
    site = at(filename, frame.f_lineno, code.co_name)
    if len(_instructions) < INSTRUCTIONS:
        _instructions[id(code), frame.f_lasti] = (code, site)
    return site


def at(filename: str, line: int, function: str = "") -> Site:
    """The place of a line, always the same object for the same line."""
    site = _sites.get((filename, line))
    if site is None:
        code = masked_text(linecache.getline(filename, line).strip())
        site = _sites[filename, line] = Site(shown(filename), line, function, code)
    return site


def file_of(site: Site) -> str | None:
    """The name under which Python knows the file of a line that was met."""
    return next((file for (file, _), known in _sites.items() if known is site), None)


def shown(filename: str) -> str:
    """Relative to the working directory when it lies below it."""
    if naming is not None and (name := naming(filename)) is not None:
        return name
    try:
        path = os.path.abspath(filename) if not filename.startswith("<") else filename
        below = os.getcwd() + os.sep
    except OSError:  # the working directory has been removed
        return filename
    return path[len(below):] if path.startswith(below) else path


def calling(depth: int = 1) -> Site | None:
    """The line at that depth of the stack, where it is the user's own; None where a library's function calls, for whomever."""
    frame = sys._getframe(depth)
    if not is_user(frame.f_code.co_filename):
        return None
    found = _instructions.get((id(frame.f_code), frame.f_lasti))
    return found[1] if found is not None else of_frame(frame, frame.f_code.co_filename)
