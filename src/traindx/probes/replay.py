"""Questions that only a second run of the user's code can answer, asked in a forked child: the user never notices.

``ask(session, name, function, then)`` forks; the grandchild runs ``function()`` on the live modules and tensors (copy
on write, so that nothing it does comes back: neither weights nor random numbers, prints or files) and sends what it
returned as JSON. ``then(outcome)`` is called on a later tick, or at the end; it may return an Observation to emit.

What the function must do itself: set the grad mode, the modules' modes and a seed, and clone inputs, which a loader's
worker may have put into shared memory.

``branch(session)`` forks too, but the child goes on with the program itself, until it is told to :meth:`Branch.say`
what it has seen; the parent waits for that.
"""
from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from traindx.core.observed import Observation
from traindx.probes.session import Probe, Session

MOST_PER_RUN = 12
MOST_PER_NAME = 3
SECONDS = 20  # after which the child is ended by the kernel
LAST_WAIT = 3.0  # seconds at the end of the program, over all that is still running
MOST_MEMORY = 16 << 30  # bytes resident: forking copies page tables, about 5 ms a GiB
_PIPE = 3  # the child's only descriptor besides the standard ones
_CHUNK = 1 << 16
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = ("socket.", "subprocess.", "shutil.", "sqlite3.", *(f"os.{name}" for name in (
    "remove", "rename", "mkdir", "rmdir", "link", "symlink", "truncate", "chmod", "chown", "kill", "system", "exec",
    "spawn", "fork", "posix_spawn")))


@dataclass(frozen=True)
class Outcome:
    """What the child returned (``value``), or ``why`` it was not checked."""

    value: Any = None
    why: str = ""


Then = Callable[[Outcome], Observation | None]


def install(session: Session) -> None:
    session.add(Replays)


def ask(session: Session, name: str, function: Callable[[], Any], then: Then, about: Iterable[Any] = (),
        seconds: float = SECONDS) -> bool:
    """Begins to run ``function`` in a child. ``about`` are the modules and tensors that it touches.

    False where another replay is running: ask again on a later step. Else True; ``then`` is called once, and at once
    where the replay is refused.
    """
    replays = Replays.instance
    return replays is None or replays.session is not session or replays.ask(name, function, then, about, seconds)


class Branch:
    """The child's end of :func:`branch`."""

    def say(self, value: Any) -> NoReturn:
        """The child's last words."""
        try:
            _send({"value": value})
        finally:
            os._exit(0)


def branch(session: Session, about: Iterable[Any] = (), seconds: float = SECONDS) -> Branch | Outcome:
    """In the child, a Branch: it goes on with the program, nothing of which comes back. In the parent, what it said."""
    why = refused(session, about)
    if why:
        return Outcome(why=why)
    read, write = os.pipe()
    os.set_blocking(read, False)
    middle = _fork_silently()
    if middle == 0:
        try:
            if _fork_silently() != 0:
                os._exit(0)
            _isolate(write, seconds)
            os.write(_PIPE, b"%d\n" % os.getpid())
        except BaseException:
            os._exit(1)
        return Branch()
    os.close(write)
    try:
        os.waitpid(middle, 0)
    except ChildProcessError:
        pass
    child = _Child(read, lambda outcome: None, time.monotonic() + seconds + 5)
    while (outcome := child.outcome()) is None:
        time.sleep(0.005)
    child.close()
    return outcome


class Replays(Probe):
    """The one child that may be running, and how many there have been."""

    instance: Replays | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asked: dict[str, int] = {}
        self._running: _Child | None = None
        Replays.instance = self

    def ask(self, name: str, function: Callable[[], Any], then: Then, about: Iterable[Any], seconds: float) -> bool:
        if self._running is not None:
            self._poll()
            if self._running is not None:
                return False
        why = self._too_many(name) or refused(self.session, about)
        if not why:
            self._asked[name] = self._asked.get(name, 0) + 1
            child = _fork(function, then, seconds)
            if child is not None:
                self._running = child
                return True
            why = "the process could not be forked"
        self._deliver(then, Outcome(why=why))
        return True

    def _too_many(self, name: str) -> str:
        full = self._asked.get(name, 0) >= MOST_PER_NAME or sum(self._asked.values()) >= MOST_PER_RUN
        return "enough replays in this run" if full else ""

    def on_tick(self, step: int) -> None:
        if self._running is not None:
            self._poll()

    def rests(self) -> bool:
        return self._running is None

    def at_end(self) -> None:
        deadline = time.monotonic() + LAST_WAIT
        while self._running is not None and time.monotonic() < deadline:
            self._poll()
            if self._running is not None:
                time.sleep(0.005)
        if self._running is not None:
            self._finish(self._running, Outcome(why="the program ended before the replay did"))

    def _poll(self) -> None:
        child = self._running
        if child is not None and (outcome := child.outcome()) is not None:
            self._finish(child, outcome)

    def _finish(self, child: _Child, outcome: Outcome) -> None:
        self._running = None
        child.close()
        self._deliver(child.then, outcome)

    def _deliver(self, then: Then, outcome: Outcome) -> None:
        observation = then(outcome)
        if observation is not None:
            self.session.emit(observation)


def refused(session: Session, about: Iterable[Any] = ()) -> str:
    """Why a replay cannot be done here, or ""."""
    if sys.platform != "linux" or not hasattr(os, "fork"):
        return "replays need fork on Linux"
    if os.getpid() == 1:
        return "the process is the init of its container"  # orphans would become its children
    if torch.cuda.is_initialized() or not _all_private_on_cpu(about):
        return "replays need all tensors on the CPU and in private memory"
    if session.compiled:
        return "the model is compiled"
    if session.in_backward:
        return "a backward is running"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "the training is distributed"
    if _listens_to_children():
        return "the program handles SIGCHLD"
    return "the process is too large to fork" if _resident() > MOST_MEMORY else ""


def _all_private_on_cpu(about: Iterable[Any]) -> bool:
    """Shared memory (Hogwild weights) would let the child's writes come back."""
    for thing in about:
        if isinstance(thing, nn.Module):
            if any(t.device.type != "cpu" or t.is_shared() for t in (*thing.parameters(), *thing.buffers())):
                return False
        elif isinstance(thing, Tensor) and thing.device.type != "cpu":
            return False
    return True


def _listens_to_children() -> bool:
    """A handler of the user's own would be called for our middle child. DataLoader's looks at its own workers only."""
    handler = signal.getsignal(signal.SIGCHLD)
    if not callable(handler):
        return False
    of_loader = getattr(handler, "__module__", "") == "torch.utils.data._utils.signal_handling"
    return not of_loader or any(callable(cell.cell_contents) for cell in getattr(handler, "__closure__", None) or ())


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


class _Child:
    """The reading end of a running child."""

    def __init__(self, pipe: int, then: Then, deadline: float) -> None:
        self.pipe = pipe
        self.then = then
        self.deadline = deadline
        self.pid = 0
        self._said = b""

    def outcome(self) -> Outcome | None:
        """Never blocks; None while the child is at work."""
        while True:
            try:
                chunk = os.read(self.pipe, _CHUNK)
            except BlockingIOError:
                return Outcome(why="the replay took too long") if time.monotonic() > self.deadline else None
            except OSError:
                return Outcome(why="the replay's pipe was closed by the program")
            if not chunk:
                return self._read()
            self._said += chunk
            if not self.pid and b"\n" in self._said:
                self.pid = int(self._said.partition(b"\n")[0])

    def _read(self) -> Outcome:
        try:
            said = json.loads(self._said.partition(b"\n")[2])
        except ValueError:
            self.pid = 0
            return Outcome(why="the replay took too long or was ended")
        self.pid = 0
        return Outcome(said.get("value"), said.get("error", ""))

    def close(self) -> None:
        if self.pid:  # it still holds the pipe's other end, so the number is still its own
            try:
                os.kill(self.pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.close(self.pipe)
        except OSError:
            pass


def _fork(function: Callable[[], Any], then: Then, seconds: float) -> _Child | None:
    """Forks twice, so that the child belongs to init and the user's ``os.wait`` never meets it; waits for the middle.

    Other threads may hold locks at this moment, which then stay locked in the child: a replay that hangs on one is
    ended by its alarm.
    """
    read, write = os.pipe()
    os.set_blocking(read, False)
    try:
        middle = _fork_silently()
    except OSError:
        os.close(read)
        os.close(write)
        return None
    if middle == 0:
        _middle(function, write, seconds)
    os.close(write)
    try:
        os.waitpid(middle, 0)
    except ChildProcessError:
        pass  # children are reaped by the kernel here, or another thread waits for any
    return _Child(read, then, time.monotonic() + seconds + 5)


def _fork_silently() -> int:
    if sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():  # of threads
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _middle(function: Callable[[], Any], write: int, seconds: float) -> None:
    try:
        if _fork_silently() == 0:
            _grandchild(function, write, seconds)
    finally:
        os._exit(0)


def _grandchild(function: Callable[[], Any], write: int, seconds: float) -> None:
    try:
        _isolate(write, seconds)
        os.write(_PIPE, b"%d\n" % os.getpid())
        try:
            with torch._C._EnableTorchFunction():  # off where a traced backward asked
                said = {"value": function()}
        except BaseException as problem:
            said = {"error": f"the replay failed: {type(problem).__name__}: {problem}"[:300]}
        _send(said)
    finally:
        os._exit(0)


def _send(said: dict[str, Any]) -> None:
    data = json.dumps(said).encode()
    while data:
        data = data[os.write(_PIPE, data):]


def _forbid(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: files may be read (imports), nothing may be changed or reached."""
    writes = event == "open" and isinstance(args[2], int) and args[2] & _WRITING
    if writes or event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} is not allowed in a replay")


def _isolate(write: int, seconds: float) -> None:
    """Nothing from here reaches the outside: no descriptor but the pipe, no file to write, no handlers; and in time."""
    os.setsid()
    for trap in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(trap, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # kept back by the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.setitimer(signal.ITIMER_REAL, seconds)  # the default action of SIGALRM ends the process even inside C code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    gc.disable()  # no destructors of the user's objects
    null = os.open(os.devnull, os.O_RDWR)
    kept = os.dup(write)
    while kept <= _PIPE:
        kept = os.dup(kept)
    for number in range(_PIPE):
        os.dup2(null, number)
    os.dup2(kept, _PIPE)
    os.closerange(_PIPE + 1, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16))
    sys.stdout = sys.stderr = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115  it lives as long as the process
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    sys.addaudithook(_forbid)
    torch.set_num_threads(1)  # thread pools do not live through a fork
