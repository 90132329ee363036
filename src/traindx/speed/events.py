"""What torch.profiler recorded of some steps, taken apart: the host's time by kind of work, the device's by what it does or waits for.

Events are those of a Chrome trace as Kineto writes it (``ph`` "X"; ``ts`` and ``dur`` in microseconds; ``cat`` names the kind). Host events
lie on ``(pid, tid)``, a process and its thread; those of a GPU on its number and the stream. Pure functions; seconds are of one step.
"""
from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from traindx.core.speed import IDLE, KINDS

Json = Any
Span = tuple[float, float]
Lane = tuple[Any, Any]
WINDOW = "ProfilerStep#"  # as torch.profiler names its steps; one of ours may span several steps
KERNEL, MEMCPY, MEMSET = "kernel", "gpu_memcpy", "gpu_memset"
ON_DEVICE = (KERNEL, MEMCPY, MEMSET)
OPERATOR, ANNOTATION = "cpu_op", "user_annotation"
CALLS = ("cuda_runtime", "cuda_driver")
ON_HOST = (OPERATOR, ANNOTATION, *CALLS)
FETCHES, UPDATES, STEPS = "enumerate(DataLoader)", "Optimizer.", "Optimizer.step#"
BACKWARD = "autograd::engine::evaluate_function"
COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph")  # that stand for operators, each with a number or a hash
READS = frozenset(("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"))
COPIES = frozenset(("aten::copy_", "aten::to", "aten::_to_copy", "aten::pin_memory"))
DIRECTIONS = ("HtoD", "DtoH", "DtoD")
MICRO = 1e-6
MOST = 12  # operators that are told


@dataclass(frozen=True)
class Event:
    """Times in microseconds."""

    name: str
    kind: str
    begin: float
    end: float
    lane: Lane
    correlation: int | None = None  # of a call and what it started on the device


@dataclass(frozen=True)
class Piece:
    """A time in which one event was the innermost of its thread. ``kind`` is one of KINDS."""

    begin: float
    end: float
    kind: str
    name: str = ""  # of the operator; "" where none was running


def summary(trace: Json, mark: int | None = None, steps: int | None = None) -> Json | None:
    """Seconds of a step by kind, by operator, and of the device; None where there is no mark.

    ``mark``: the number of the one that is wanted, in which there are ``steps`` steps. Else each mark is a step, the first of several is for
    warming up.
    """
    events = read(trace)
    marks = sorted((one for one in events if one.name.startswith(WINDOW)), key=lambda one: one.begin)
    used = (marks[1:] or marks) if mark is None else [one for one in marks if one.name == f"{WINDOW}{mark}"]
    if not used or used[-1].end <= used[0].begin:
        return None
    count = steps or len(used)
    window, lane = (used[0].begin, used[-1].end), used[-1].lane
    device = [one for one in _on_one_device(events) if one.end > window[0] and one.begin < window[1]]
    host = list(_updates([one for one in events if one.kind in ON_HOST]))
    pieces = host_pieces(host, lane, _without_last_wait(host, lane, window) if device else window)
    return {"steps": count, "seconds": MICRO * length([window]) / count,
            "kinds": {kind: MICRO * sum(piece.end - piece.begin for piece in pieces if piece.kind == kind) / count for kind in KINDS},
            "operators": _operators(pieces, host, window, count),
            "device": _device(device, host, pieces, window, count) if device else None}


def read(trace: Json) -> list[Event]:
    """Complete events of the kinds that are used here; ``gpu_user_annotation`` and the profiler's own ``overhead`` are not."""
    return [Event(one.get("name", ""), one["cat"], one["ts"], one["ts"] + one["dur"], (one.get("pid"), one.get("tid")),
                  (one.get("args") or {}).get("correlation"))
            for one in trace["traceEvents"] if one.get("ph") == "X" and one.get("cat") in (*ON_HOST, *ON_DEVICE) and one.get("dur") is not None]


def _updates(host: Sequence[Event]) -> Iterator[Event]:
    """Where an optimizer is given a closure, its step begins when the last backward in it has ended: what comes before is training."""
    ends = sorted((one.end, one.begin) for one in host if one.name.startswith(BACKWARD))
    for event in host:
        at = bisect_right(ends, (event.end, float("inf"))) - 1
        closed = event.kind == ANNOTATION and event.name.startswith(STEPS) and at >= 0 and ends[at][1] >= event.begin
        yield replace(event, begin=ends[at][0]) if closed else event


# -- spans of time: sorted, and apart from each other, after ``union`` ------------------------------------------------------

def union(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > begin:
            found.append((begin, end))
    return found


def without(spans: Sequence[Span], taken: Sequence[Span]) -> list[Span]:
    """What is left of ``spans`` outside of ``taken``."""
    found: list[Span] = []
    others, at = union(taken), 0
    for begin, end in union(spans):
        while at < len(others) and others[at][1] <= begin:
            at += 1
        now = at
        while now < len(others) and others[now][0] < end:
            if others[now][0] > begin:
                found.append((begin, others[now][0]))
            begin = max(begin, others[now][1])
            now += 1
        if begin < end:
            found.append((begin, end))
    return found


def within(spans: Iterable[Span], window: Span) -> list[Span]:
    cut = ((max(begin, window[0]), min(end, window[1])) for begin, end in spans)
    return [(begin, end) for begin, end in cut if begin < end]


def length(spans: Iterable[Span]) -> float:
    return sum(end - begin for begin, end in spans)


# -- the host -------------------------------------------------------------------------------------------------------------

def host_pieces(events: Sequence[Event], lane: Lane, window: Span) -> list[Piece]:
    """The window cut into pieces, each of one kind: what the thread ``lane`` does, else what others of the same process do (autograd's
    threads), else a gap. So kinds add up to the window."""
    by_lane: dict[Lane, list[Event]] = defaultdict(list)
    for event in events:
        if event.lane[0] == lane[0] and event.end > window[0] and event.begin < window[1]:
            by_lane[event.lane].append(event)
    found: list[Piece] = []
    for each in sorted(by_lane, key=lambda one: one != lane):
        free = without([window], [(piece.begin, piece.end) for piece in found])
        found += _cut(_innermost(by_lane[each]), free)
    gaps = without([window], [(piece.begin, piece.end) for piece in found])
    return sorted([*found, *(Piece(begin, end, "gaps") for begin, end in gaps)], key=lambda piece: piece.begin)


def _innermost(events: Sequence[Event]) -> Iterator[Piece]:
    """Of one thread, whose events nest. What lies in an update of the optimizer or a fetch of the loader is part of it."""
    stack: list[Event] = []
    at = 0.0
    for event in sorted(events, key=lambda one: (one.begin, -one.end)):
        while stack and stack[-1].end <= event.begin:
            yield from _piece(at, stack[-1].end, stack)
            at = max(at, stack.pop().end)
        yield from _piece(at, event.begin, stack)
        at = max(at, event.begin)
        stack.append(event)
    while stack:
        yield from _piece(at, stack[-1].end, stack)
        at = max(at, stack.pop().end)


def _piece(begin: float, end: float, stack: Sequence[Event]) -> Iterator[Piece]:
    """``name``: of the innermost operator, its calls of the device's driver included."""
    if end > begin and (kind := _kind(stack)):
        named = _operates(stack[-1]) or stack[-1].kind in CALLS
        yield Piece(begin, end, kind, next((_called(one) for one in reversed(stack) if named and _operates(one)), ""))


def _called(event: Event) -> str:
    """The operator's name; of what torch.compile made, its kind."""
    return next((kind.removeprefix("## Call ") for kind in COMPILED if event.name.startswith(kind)), event.name)


def _operates(event: Event) -> bool:
    return event.kind == OPERATOR or event.name.startswith(COMPILED)


def _kind(stack: Sequence[Event]) -> str:
    """"" where Python runs between operators."""
    for event in stack:
        if event.kind == ANNOTATION and event.name.startswith(FETCHES):
            return "input"
        if event.kind == ANNOTATION and event.name.startswith(UPDATES):
            return "optimizer"
    names, last = {one.name for one in stack if one.kind == OPERATOR}, stack[-1] if stack else None
    if names & READS or (last is not None and waits(last)):
        return "reads"
    if last is None or not (_operates(last) or last.kind in CALLS):
        return ""
    if last.kind in CALLS:
        return "copies" if "Memcpy" in last.name else "launch"
    return "copies" if names & COPIES else "operators"


def waits(event: Event) -> bool:
    """A call in which the host waits for the device."""
    return event.kind in CALLS and event.name.endswith("Synchronize")


def _cut(pieces: Iterable[Piece], free: Sequence[Span]) -> Iterator[Piece]:
    """The parts of the pieces that lie in ``free``."""
    begins = [begin for begin, _ in free]
    for piece in pieces:
        at = max(bisect_right(begins, piece.begin) - 1, 0)
        while at < len(free) and free[at][0] < piece.end:
            begin, end = max(piece.begin, free[at][0]), min(piece.end, free[at][1])
            if begin < end:
                yield Piece(begin, end, piece.kind, piece.name)
            at += 1


def _without_last_wait(host: Sequence[Event], lane: Lane, window: Span) -> Span:
    """The window up to the wait for the device that closes it: that one is ours."""
    inside = [one for one in host if one.lane == lane and window[0] <= one.begin < window[1] and not one.name.startswith(WINDOW)]
    last = max(inside, key=lambda one: one.end, default=None)
    return (window[0], last.begin) if last is not None and waits(last) and last.name.startswith(("cudaDevice", "cuCtx", "hipDevice")) else window


def _operators(pieces: Sequence[Piece], host: Sequence[Event], window: Span, count: int) -> list[Json]:
    """Those with the most time of their own, without that of the operators they call; the loader's are not among them."""
    own: dict[str, float] = defaultdict(float)
    for piece in pieces:
        if piece.name and piece.kind != "input":
            own[piece.name] += piece.end - piece.begin
    fetching = _spans(pieces, "input")
    calls = Counter(_called(one) for one in host if _operates(one) and window[0] <= one.begin < window[1] and not _covers(fetching, one.begin))
    most = sorted(own, key=lambda name: -own[name])[:MOST]
    return [{"name": name, "seconds": MICRO * own[name] / count, "calls": calls[name] / count} for name in most]


def _spans(pieces: Sequence[Piece], kind: str) -> list[Span]:
    return union((piece.begin, piece.end) for piece in pieces if piece.kind == kind)


# -- the device -----------------------------------------------------------------------------------------------------------

def _on_one_device(events: Sequence[Event]) -> list[Event]:
    """Of the device that was busy longest."""
    by_device: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        if event.kind in ON_DEVICE:
            by_device[event.lane[0]].append(event)
    return max(by_device.values(), key=lambda found: sum(one.end - one.begin for one in found), default=[])


def _device(device: Sequence[Event], host: Sequence[Event], pieces: Sequence[Piece], window: Span, count: int) -> Json:
    """Streams side by side count once; a copy behind which a kernel runs costs nothing."""
    def spans(wanted: Iterable[Event]) -> list[Span]:
        return within(union((one.begin, one.end) for one in wanted), window)
    kernels = [one for one in device if one.kind == KERNEL]
    computing = spans(kernels)
    hidden = {way: without(spans(one for one in device if one.kind == MEMCPY and way in one.name), computing) for way in DIRECTIONS}
    copying = without(spans(one for one in device if one.kind != KERNEL), computing)
    launches = [one for one in host if one.kind in CALLS and "Launch" in one.name and window[0] <= one.begin < window[1]]
    idle = idle_by_cause(device, host, _spans(pieces, "input"), window)
    return {"computing": MICRO * length(computing) / count, "copying": MICRO * length(copying) / count,
            "copies": {way: MICRO * length(left) / count for way, left in hidden.items()},
            "idle": {cause: MICRO * took / count for cause, took in idle.items()},
            "kernels": len(kernels) / count, "kernel_seconds": MICRO * sum(one.end - one.begin for one in kernels) / max(len(kernels), 1),
            "launches": len(launches) / count, "launch_seconds": MICRO * sum(one.end - one.begin for one in launches) / count}


def idle_by_cause(device: Sequence[Event], host: Sequence[Event], fetching: Sequence[Span], window: Span) -> dict[str, float]:
    """Microseconds in which the device has nothing to do, by what the host does meanwhile.

    ``input``: it fetches a batch; ``transfer``: it is in the call of a copy to the device. Of the rest: where the host was waiting when the
    device ran dry, all that was queued is done, and the device waits for it to begin anew: ``sync``, or ``transfer`` where it had waited for
    a copy to the device. Else the host does not queue work fast enough: ``launch``.
    """
    found = dict.fromkeys(IDLE, 0.0)
    to_device = {one.correlation for one in device if one.kind == MEMCPY and "HtoD" in one.name}
    copying = [(one.begin, one.end) for one in host if one.kind in CALLS and one.correlation in to_device]
    for cause, gaps in _gaps(device, host, window).items():
        unfetched = without(gaps, fetching)
        rest = without(unfetched, copying)
        found["input"] += length(gaps) - length(unfetched)
        found["transfer"] += length(unfetched) - length(rest)
        found[cause] += length(rest)
    return found


def _gaps(device: Sequence[Event], host: Sequence[Event], window: Span) -> dict[str, list[Span]]:
    """Times without work on the device, by what the host was doing when they began."""
    found: dict[str, list[Span]] = {"launch": [], "sync": [], "transfer": []}
    waited = union((one.begin, one.end) for one in host if waits(one))
    last = {one.end: one for one in device}
    for gap in without([window], [(one.begin, one.end) for one in device]):
        before = last.get(gap[0])
        copied = before is not None and before.kind == MEMCPY and "HtoD" in before.name
        found["launch" if not _covers(waited, gap[0]) else "transfer" if copied else "sync"].append(gap)
    return found


def _covers(spans: Sequence[Span], moment: float) -> bool:
    at = bisect_right(spans, (moment, float("inf"))) - 1
    return at >= 0 and spans[at][0] <= moment <= spans[at][1]
