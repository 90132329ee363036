"""Several ranks on one machine: each is watched by a traindx of its own, the first of them has the run folder and reports on all.

They meet by files, never through the program's own process group: nothing is added to what the program sends, and a rank
that hangs keeps nobody from reporting. Imports no torch.
"""
from __future__ import annotations

import hashlib
import json
import linecache
import os
import re
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from traindx.core.findings import RankEnd
from traindx.core.observed import MAX_STEPS, Ended, Site
from traindx.core.observed.ranks import RankSeen
from traindx.core.recording import EVENTS, METRICS, Recording
from traindx.core.text import EMPTY, Text, same
from traindx.launch import Outcome
from traindx.runs.status import born, is_running

FOLDER = "ranks"  # within the run folder: one folder for each rank but the one that reports
STACK = "stack.txt"  # of a rank that the launcher ended, as it was then
ENDED = "ended.json"
BEGUN = "begun.json"
MEET_SECONDS = 300.0  # in which the first rank makes the run folder
FAILED_SECONDS = 15.0  # left to the others where this rank failed: the launcher waits for us to end them
SILENT_SECONDS = 60.0  # without news of the others, after which the report no longer waits
ABSENT_SECONDS = 10.0  # in which a rank must have begun
POLL_SECONDS = 0.1
_NAMED = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "GROUP_RANK")
_FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+) in (.+)$')

RANK_ENDED = Text("Rank {rank} ended first: {how}{where}, after {steps} step{steps:|s}.",
                  "进程 {rank} 最先结束：{how}{where}，走了 {steps} 步。")
RANK_TOO = Text("Rank {rank} then: {how}{where}, after {steps} step{steps:|s}.", "随后进程 {rank}：{how}{where}，走了 {steps} 步。")
RANK_STILL = Text("Rank {rank} still ran{where} when this was written; it had made {steps} step{steps:|s}.",
                  "写这份报告时进程 {rank} 还在运行{where}，已走 {steps} 步。")
RANK_SILENT = Text("Rank {rank} ended without a last word{where}, after {steps} step{steps:|s}: it was killed, or left by os._exit.",
                   "进程 {rank} 没有交代就结束了{where}，走了 {steps} 步：要么是被强行终止的，要么自己用 os._exit 退出。")
RANK_UNSEEN = Text("Rank {rank} left no recording: what is said here does not speak of it.", "进程 {rank} 没有留下记录，这里的结论不包括它。")
AT = Text(" at {place}", "（在 {place}）")
BY_SIGNAL = Text("killed by {name}", "收到 {name} 而终止")
WITH_STATUS = Text("exit status {status}", "退出状态 {status}")
FEWER = Text("{here} of {world} rank{world:|s} were seen (others run on other machines, or were forked): only these are compared.",
             "{world} 个进程里只看到 {here} 个（其余在别的机器上，或是 fork 出来的），只比较了这些。")
NO_MEETING = Text("traindx: rank {rank}: no run folder came from rank {leader}; this rank runs on, unwatched",
                  "traindx：进程 {rank} 没有等到进程 {leader} 的运行目录；照常运行，只是不监视")


@dataclass(frozen=True)
class Place:
    """This process among the ``together`` ranks that a launcher started on this machine, of ``world`` in all."""

    rank: int
    world: int
    local: int
    together: int
    token: str

    @property
    def leads(self) -> bool:
        return self.local == 0

    @property
    def leader(self) -> int:
        return self.rank - self.local

    @property
    def neighbours(self) -> tuple[int, ...]:
        """The ranks of this machine: a launcher numbers them one after the other."""
        return tuple(range(self.leader, self.leader + self.together))


def place_from(environment: Mapping[str, str]) -> Place | None:
    """As the launcher told it; None where one process trains, or where nobody told."""
    try:
        rank, world = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        local = int(environment.get("LOCAL_RANK", rank))
        together = int(environment.get("LOCAL_WORLD_SIZE", world if local == rank else 1))
    except (KeyError, ValueError):
        return None
    if together < 2 or not 0 <= local < together <= world or rank < local:
        return None
    words = "\0".join(environment.get(name, "") for name in _NAMED)
    return Place(rank, world, local, together, hashlib.sha256(words.encode()).hexdigest()[:16])


# -- where they meet ----------------------------------------------------------------------------------------------------

def meeting_file(place: Place) -> Path:
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"traindx-{user}-ranks-{place.token}.json"


def signalled_as_a_group(environment: Mapping[str, str]) -> bool:
    """Whether the launcher signals all processes of this rank at once: torchrun gives each rank a session of its own."""
    return "TORCHELASTIC_RUN_ID" in environment and hasattr(os, "getpgrp") and os.getpgrp() == os.getpid()


@contextmanager
def meeting(place: Place, folder: Path) -> Iterator[None]:
    """The others are told the run folder as long as this lasts."""
    file = meeting_file(place)
    try:
        write(file, {"folder": str(folder.resolve()), "pid": os.getpid(), "born": born(os.getpid())})
    except OSError:
        pass  # they say so
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def met(place: Place, seconds: float = MEET_SECONDS) -> Path | None:
    """This rank's own folder within the run folder; None where none came."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        told = _told(meeting_file(place))
        if told is not None:
            folder = Path(told) / FOLDER / str(place.rank)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write(folder / BEGUN, {"pid": os.getpid(), "born": born(os.getpid())})
            except OSError:
                return None
            return folder
        time.sleep(POLL_SECONDS / 2)
    return None


def _told(file: Path) -> str | None:
    """A file that a former run left behind, or that somebody else wrote, tells nothing."""
    fields = read(file)
    pid, folder = fields.get("pid"), fields.get("folder")
    try:
        ours = not hasattr(os, "getuid") or file.stat().st_uid == os.getuid()
    except OSError:
        return None
    lives = isinstance(pid, int) and is_running(file, {"pid": pid, "born": fields.get("born"), "host": socket.gethostname()})
    return folder if ours and lives and isinstance(folder, str) and Path(folder).is_dir() else None


def say_end(folder: Path, outcome: Outcome) -> None:
    """A rank's last word to the one that reports."""
    with suppress(OSError):
        write(folder / ENDED, {"status": outcome.status, "signal": outcome.signal, "seconds": round(outcome.seconds, 3), "at": time.time()})


def write(file: Path, fields: Mapping[str, Any]) -> None:
    partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(fields), encoding="utf-8")
    os.replace(partial, file)


def read(file: Path) -> dict[str, Any]:
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


# -- waiting for the others ---------------------------------------------------------------------------------------------

def await_others(place: Place, folder: Path, failed: bool, silent: float = SILENT_SECONDS) -> None:
    """Until every other rank of this machine has ended, or it is time to report: this rank failed, or they have no news."""
    others = [folder / FOLDER / str(rank) for rank in place.neighbours if rank != place.rank]
    began = heard = time.monotonic()
    size = -1
    with _told_to_end() as told:
        while not told and not all(_is_over(other, time.monotonic() - began) for other in others):
            now, news = time.monotonic(), sum(map(_size, others))
            if news != size:
                size, heard = news, now
            if now - began > FAILED_SECONDS if failed else now - heard > silent:
                return
            time.sleep(POLL_SECONDS)


@contextmanager
def _told_to_end() -> Iterator[list[int]]:
    """Ctrl-C, or the launcher's SIGTERM, while we wait: it is time to report."""
    told: list[int] = []
    before: dict[int, Any] = {}
    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError):  # not in the main thread
            before[each] = signal.signal(each, lambda number, frame: told.append(number))
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_over(folder: Path, waited: float) -> bool:
    """Ended and said so; or its process is gone, or has never come."""
    if (folder / ENDED).exists():
        return True
    begun = read(folder / BEGUN)
    if not begun:
        return waited > ABSENT_SECONDS
    return not is_running(folder, {**begun, "host": socket.gethostname()})


def _size(folder: Path) -> int:
    total = 0
    for name in (EVENTS, METRICS):
        with suppress(OSError):
            total += (folder / name).stat().st_size
    return total


# -- what they left -----------------------------------------------------------------------------------------------------

@dataclass
class Gathered:
    """The recordings by rank, and how each rank ended, with the time of its end (None where it has not)."""

    recordings: dict[int, Recording] = field(default_factory=dict)
    ends: list[RankEnd] = field(default_factory=list)
    at: dict[int, float] = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)  # when the report was written


def gathered(place: Place | None, folder: Path, own: Outcome) -> Gathered:
    """What the ranks left: those of the launcher, else those that the script has started."""
    if place is not None:
        ended = time.time()
        await_others(place, folder, failed=own.status != 0)
        return gather(place, folder, own, ended)
    return started_by_the_script(folder, own)


def gather(place: Place, folder: Path, own: Outcome, ended: float) -> Gathered:
    """``own`` is the outcome of the rank that reports, which was over at ``ended`` (seconds of the epoch)."""
    found = Gathered()
    for rank in place.neighbours:
        home = folder if rank == place.rank else folder / FOLDER / str(rank)
        if rank == place.rank:
            recording = own.recording
            said: dict[str, Any] = {"status": own.status, "signal": own.signal, "seconds": own.seconds, "at": ended}
        else:
            recording, said = Recording.read(home), read(home / ENDED)
        _left(recording, said.get("status"))
        if not recording.empty:
            found.recordings[rank] = recording
        if isinstance(said.get("at"), float):
            found.at[rank] = said["at"]
        if not said and not _is_over(home, ABSENT_SECONDS + 1):
            found.alive.add(rank)
        found.ends.append(_end_of(rank, recording, said, home))
    return found


def _left(recording: Recording, status: Any) -> None:
    """A rank that left by ``sys.exit`` with another status than 0 has not come to the end of its training."""
    ended = recording.last(Ended)
    if status and ended is not None and ended.how == "finished":
        recording.add(replace(ended, how="exit"))


def _end_of(rank: int, recording: Recording, said: Mapping[str, Any], home: Path) -> RankEnd:
    ended, number = recording.last(Ended), said.get("signal")
    stopped = _signal_name(number) if number else None if ended is None else MAX_STEPS if ended.how == MAX_STEPS else ended.error
    where = ended.site if ended is not None and ended.site is not None else stack_in(home)
    return RankEnd(rank, said.get("status"), recording.steps, said.get("seconds"), stopped, where, not recording.empty)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def stack_in(home: Path) -> Site | None:
    """The user's innermost line in the stack that a rank left when the launcher ended it."""
    try:
        lines = (home / STACK).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    frames = (_FRAME.match(line) for line in lines)
    return next((_site(frame[1], int(frame[2]), frame[3]) for frame in frames if frame and _is_users(frame[1])), None)


def _site(file: str, line: int, function: str) -> Site:
    below = os.getcwd() + os.sep
    return Site(file.removeprefix(below), line, function, linecache.getline(file, line).strip())


def _is_users(file: str) -> bool:
    path = os.path.realpath(file)
    libraries = (os.path.realpath(os.path.dirname(os.__file__)), os.path.realpath(os.path.dirname(__file__)))
    return not file.startswith("<") and "site-packages" not in path and "dist-packages" not in path and not path.startswith(libraries)


def remarks(found: Gathered) -> list[Text]:
    """Which rank ended first where not all ended well; which still runs, left nothing, or lies elsewhere."""
    ill = sorted((end for end in found.ends if end.status), key=lambda end: (_is_victim(end), found.at.get(end.rank, 0.0)))
    said = [(RANK_TOO if number else RANK_ENDED).fill(rank=end.rank, how=_how(end), where=_at(end), steps=end.steps)
            for number, end in enumerate(ill)]
    silent = [end for end in found.ends if end.status is None and end.seen and found.recordings[end.rank].last(Ended) is None]
    said += [(RANK_STILL if end.rank in found.alive else RANK_SILENT).fill(rank=end.rank, where=_at(end), steps=end.steps) for end in silent]
    said += [RANK_UNSEEN.fill(rank=end.rank) for end in found.ends if not end.seen]
    worlds = [seen.world for recording in found.recordings.values() if (seen := recording.last(RankSeen)) is not None]
    if worlds and len(found.ends) < max(worlds):
        said.append(FEWER.fill(here=len(found.ends), world=max(worlds)))
    return said


def _is_victim(end: RankEnd) -> bool:
    """Ended by the launcher, or because another rank had left: not the first cause."""
    stopped = end.stopped or ""
    return stopped == "SIGTERM" or "onnection closed by peer" in stopped or "onnection reset by peer" in stopped


def _how(end: RankEnd) -> Text:
    if end.stopped and end.stopped.startswith(("SIG", "signal ")):
        return BY_SIGNAL.fill(name=end.stopped)
    return same(end.stopped) if end.stopped else WITH_STATUS.fill(status=end.status)


def _at(end: RankEnd) -> Text:
    return AT.fill(place=f"{end.where.file}:{end.where.line}") if end.where else EMPTY


# -- ranks that the script starts itself ---------------------------------------------------------------------------------

def started_by_the_script(folder: Path, own: Outcome) -> Gathered:
    """The ranks that the script has started, or the launcher that it is; nothing where there are none.

    Where the script only starts them, rank 0 takes its place.
    """
    found = Gathered()
    for home in sorted((folder / FOLDER).iterdir()) if (folder / FOLDER).is_dir() else ():
        recording = Recording.read(home)
        seen = recording.last(RankSeen)
        if seen is not None and seen.world > 1:
            found.recordings.setdefault(seen.rank, recording)
            found.ends.append(_end_of(seen.rank, recording, {}, home))
    mine = own.recording.last(RankSeen)
    if found.ends and mine is not None:
        _left(own.recording, own.status)
        found.recordings[mine.rank] = own.recording
        found.ends.append(_end_of(mine.rank, own.recording, {"status": own.status, "signal": own.signal, "seconds": own.seconds}, folder))
    elif found.ends:
        _first_takes_the_place(folder, own, found)
    found.ends.sort(key=lambda end: end.rank)
    return found


def _first_takes_the_place(folder: Path, own: Outcome, found: Gathered) -> None:
    """The run folder then holds the recording of the first rank, as it does where a launcher starts us."""
    own.recording = found.recordings[min(found.recordings)]
    homes = {home: Recording.read(home).last(RankSeen) for home in (folder / FOLDER).iterdir()}
    first = next(home for home, seen in homes.items() if seen is not None and seen.rank == min(found.recordings))
    (folder / FOLDER / "launcher").mkdir(exist_ok=True)
    for name in (EVENTS, METRICS):
        with suppress(OSError):
            os.replace(folder / name, folder / FOLDER / "launcher" / name)
        with suppress(OSError):
            os.replace(first / name, folder / name)
