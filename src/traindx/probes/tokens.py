"""Looks at targets that are sequences of tokens: padding at their ends, and their shift against the inputs."""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from traindx.core.codec import decode, encode
from traindx.core.observed import Site
from traindx.core.observed.tokens import TokenTargets
from traindx.probes import replay
from traindx.probes.mixing import Recorder, Result
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import readable, tensors_in

CLASS_LOSSES = ("cross_entropy", "nll_loss")
FIRST_CALLS = 4  # of each call site
MOST_TARGETS = 1 << 18
MOST_LOGITS = 1 << 22
OFFSETS = (0, 1, 2)
LABELS = ("label", "target")  # arguments so named are compared with, not predicted from
ENOUGH = 32  # targets compared
SAME = 0.98  # of them
SEES = 1e-2  # of the output's spread: how far an output that sees the exchanged tokens moves
RUNS_KEPT = 4


def install(session: Session) -> None:
    session.add(Tokens)


@dataclass(frozen=True)
class Grid:
    """Targets as [rows, steps]; ``first`` tells that time is the first dimension of the program's tensors."""

    tokens: Tensor
    first: bool


class Tokens(Probe):
    """Early loss calls on class ids, against the arguments of the forwards before them."""

    areas = ("loss",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._runs: list[ForwardRun] = []
        self._per_site: dict[Any, int] = {}
        self._calls = 0
        self._open: tuple[TokenTargets, ForwardRun, Tensor] | None = None
        self._copied: tuple[ForwardRun, Tensor] | None = None  # the argument that equals the targets
        self._asked = False
        self._led: tuple[ForwardRun, Tensor, int] | None = None  # the argument that holds the targets a step later, and its time
        self._asked_ahead = False

    def before_forward(self, run: ForwardRun) -> None:
        if self.session.detailed:
            self._runs = [*self._runs[1 - RUNS_KEPT:], run]

    def on_loss(self, run: LossRun) -> None:
        self._calls += 1
        if not self._wanted(run):
            return
        shapes = list(self._shapes())
        grid = grid_of(run.target, shapes)
        if grid is None:
            return
        ignore = run.arguments.get("ignore_index")
        seen = TokenTargets(
            step=self.session.step, key=f"tokens-{self._calls}", function=run.function, site=run.site,
            made_at=run.made_at, grad=run.grad, rows=grid.tokens.shape[0], length=grid.tokens.shape[1],
            reduction=str(run.arguments.get("reduction", "mean")))
        valid = grid.tokens != ignore if isinstance(ignore, int) else torch.ones_like(grid.tokens, dtype=torch.bool)
        tails = tails_of(grid.tokens)
        facts = self._tail_facts(run, grid, tails, valid) | self._shift_facts(run, grid, valid & ~tails)
        seen = replace(seen, **facts)
        self.session.emit(seen)
        self._follow(run, grid, tails, seen)

    def _wanted(self, run: LossRun) -> bool:
        target = run.target
        if not self.session.detailed or run.function not in CLASS_LOSSES or not readable(target):
            return False
        if target.is_floating_point() or target.dim() not in (1, 2) or not 4 <= target.numel() <= MOST_TARGETS:
            return False
        count = self._per_site[id(run.site)] = self._per_site.get(id(run.site), 0) + 1
        return count <= FIRST_CALLS

    def _shapes(self) -> Iterator[tuple[int, int]]:
        """The first two sizes of what went into and came out of the latest forwards."""
        for run in reversed(self._runs):
            for value in (run.output, run.args, run.kwargs):
                for tensor in tensors_in(value, 6):
                    if tensor.dim() >= 2:
                        yield int(tensor.shape[0]), int(tensor.shape[1])

    def _inputs(self) -> Iterator[tuple[ForwardRun, int, Tensor]]:
        """Arguments of the latest forwards that may be sequences, and are no labels by their name."""
        for run in reversed(self._runs):
            for place, (name, value) in enumerate(named(run)):
                a_label = name in ("y", "ys") or any(word in name for word in LABELS)
                if not a_label and readable(value) and value.dim() >= 2:
                    yield run, place, value

    def _tail_facts(self, run: LossRun, grid: Grid, tails: Tensor, valid: Tensor) -> dict[str, Any]:
        weight = run.arguments.get("weight")
        token = int(grid.tokens[:, -1].mode().values)
        counted = tails & valid
        unweighted = isinstance(weight, Tensor) and token < weight.numel() and float(weight[token]) == 0
        if unweighted or not bool(counted.any()):
            return {}
        lengths = counted.sum(1)
        return {"tail_token": token, "tail_share": float(counted.sum() / valid.sum()),
                "tail_varies": bool(lengths.max() > lengths.min()),
                "tail_loss_share": _loss_share(run, grid, counted, valid),
                "input_tail_share": max((_input_tails(value.detach(), grid) for _, place, value in self._inputs()
                                         if place == 0 or not _one_memory(value, run.target)), default=0.0)}

    def _shift_facts(self, run: LossRun, grid: Grid, valid: Tensor) -> dict[str, Any]:
        """Both dimensions are tried as time: shifted along the samples nothing is equal."""
        best: dict[int, float] = {}
        compared = 0
        self._copied = self._led = None
        for forward, _, value in self._inputs():
            if value.is_floating_point() or value.dim() != 2 or value.unique().numel() < 3:
                continue
            sequence = value.t() if grid.first else value
            for time, targets, inputs, kept in ((1, grid.tokens, sequence, valid), (0, grid.tokens.t(), sequence.t(), valid.t())):
                if inputs.shape[0] != targets.shape[0]:
                    continue
                for offset in OFFSETS:
                    count, share = shifted_share(targets, inputs, kept, offset)
                    if count >= ENOUGH:
                        compared = max(compared, count)
                        best[offset] = max(best.get(offset, 0.0), share)
                        if offset == 0 and share > SAME:
                            self._copied = forward, value
                        if offset == 1 and share > SAME and bool(kept[:, :inputs.shape[1] // 2].all()):
                            self._led = forward, value, 1 - time if grid.first else time
        return {"compared": compared, "equal": best or None}

    def _follow(self, run: LossRun, grid: Grid, tails: Tensor, seen: TokenTargets) -> None:
        """What only backward, or a replay, can tell."""
        output = run.output
        if seen.reduction == "none" and seen.tail_share > 0 and isinstance(output, Tensor) and output.requires_grad:
            marks = (tails.t() if grid.first else tails).reshape(-1)
            output.register_hook(lambda gradient: self._weigh(seen, marks, gradient))
        equal = seen.equal or {}
        if self._copied is not None and equal.get(1, 0) < SAME and seen.grad and not self._asked:
            self._open = seen, *self._copied
        elif self._led is not None and equal.get(0, 0) < SAME and seen.grad and not self._asked_ahead:
            self._open = seen, *self._led[:2]

    def _weigh(self, seen: TokenTargets, marks: Tensor, gradient: Tensor) -> None:
        size = gradient.detach().abs().reshape(-1)
        if readable(size) and size.shape == marks.shape:
            others = float(size[~marks].mean()) if bool((~marks).any()) else 0.0
            self.session.emit(replace(seen, tail_gradient=float(size[marks].mean()) / (others or 1.0)))

    def before_backward(self, run: BackwardRun) -> None:
        if self._open is None:
            return
        (seen, forward, given), self._open = self._open, None
        if self._led is not None:
            self._ask_ahead(seen, *self._led)
            return

        def then(outcome: replay.Outcome) -> TokenTargets | None:
            return replace(seen, causal=outcome.value) if isinstance(outcome.value, bool) else None

        about = (forward.module, *tensors_in((forward.args, forward.kwargs)))
        self._asked = replay.ask(self.session, "causality", lambda: is_causal(forward, given), then, about)

    def _ask_ahead(self, seen: TokenTargets, forward: ForwardRun, given: Tensor, time: int) -> None:
        def then(outcome: replay.Outcome) -> TokenTargets | None:
            said = outcome.value
            if not isinstance(said, dict):
                return None
            return replace(seen, sees_next=said["sees"], sees_at=decode(Site, said["site"]) if said.get("site") else None)

        about = (forward.module, *tensors_in((forward.args, forward.kwargs)))
        self._asked_ahead = replay.ask(self.session, "looking ahead", lambda: sees_next(forward, given, time), then, about)

    def on_tick(self, step: int) -> None:
        self._runs, self._open, self._copied, self._led = [], None, None, None


def named(run: ForwardRun) -> list[tuple[str, Any]]:
    """Arguments of a forward by the names of its parameters."""
    bound: dict[Any, Any]
    try:
        bound = inspect.signature(run.module.forward).bind(*run.args, **run.kwargs).arguments
    except (TypeError, ValueError):
        bound = dict(enumerate(run.args)) | run.kwargs
    flat: list[tuple[str, Any]] = []
    for name, value in bound.items():
        flat += value.items() if isinstance(value, dict) else [(str(name).lower(), value)]
    return flat


def _one_memory(one: Tensor, other: Tensor) -> bool:
    return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


def grid_of(target: Tensor, shapes: list[tuple[int, int]]) -> Grid | None:
    """The target as rows of tokens; a flat one by the sizes of what the model saw, whole or a step shorter."""
    tokens = target.detach().long()
    if tokens.dim() == 1:
        count = tokens.numel()
        whole = [*shapes, *((a, b - 1) for a, b in shapes), *((a - 1, b) for a, b in shapes)]
        sizes = next(((a, b) for a, b in whole if min(a, b) > 1 and a * b == count), None)
        if sizes is None:
            return None
        tokens = tokens.reshape(sizes)
    if min(tokens.shape) < 2:
        return None
    across = tails_of(tokens.t()).sum()
    return Grid(tokens.t(), True) if across > tails_of(tokens).sum() else Grid(tokens, False)


def tails_of(tokens: Tensor) -> Tensor:
    """Which entries of [rows, steps] are in a run, two or longer, of the token that ends most rows."""
    same = tokens == tokens[:, -1].mode().values
    run = same.flip(1).long().cumprod(1).flip(1).bool()
    return run & (run.sum(1, keepdim=True) >= 2)


def shifted_share(targets: Tensor, inputs: Tensor, valid: Tensor, offset: int) -> tuple[int, float]:
    """How many targets have an input ``offset`` steps later, and which share of them equals it."""
    steps = min(targets.shape[1], inputs.shape[1] - offset)
    if steps < 1:
        return 0, 0.0
    kept = valid[:, :steps]
    equal = (targets[:, :steps] == inputs[:, offset:offset + steps]) & kept
    count = int(kept.sum())
    return count, float(equal.sum() / count) if count else 0.0


def _input_tails(value: Tensor, grid: Grid) -> float:
    """The share of an input that is runs of one value (one frame of zeros, for floats) at the end of its rows."""
    sequence = value.transpose(0, 1) if grid.first else value
    if sequence.shape[0] != grid.tokens.shape[0] or sequence.dim() > 3 or sequence.numel() > MOST_LOGITS:
        return 0.0
    if sequence.is_floating_point():
        if sequence.dim() != 3:
            return 0.0
        sequence = (sequence != 0).any(2)
        if bool(sequence[:, -1].all()):
            return 0.0
    elif sequence.dim() != 2:
        return 0.0
    tails = tails_of(sequence.long())
    return float(tails.float().mean())


def _loss_share(run: LossRun, grid: Grid, tails: Tensor, valid: Tensor) -> float | None:
    """How much of the summed loss stands on the tails."""
    scores = run.input
    if not readable(scores) or scores.numel() > MOST_LOGITS or scores.dim() not in (2, 3):
        return None
    scores = scores.detach().float()
    rows = scores if scores.dim() == 2 else scores.movedim(1, -1).reshape(-1, scores.shape[1])
    order = (grid.tokens.t() if grid.first else grid.tokens).reshape(-1)
    marks = [(mask.t() if grid.first else mask).reshape(-1) for mask in (tails, valid)]
    if rows.shape[0] != order.numel() or int(order.max()) >= rows.shape[1]:
        return None
    logs = F.log_softmax(rows, 1) if run.function == "cross_entropy" else rows
    each = -logs.gather(1, order.clamp(min=0)[:, None])[:, 0]
    whole = float(each[marks[1]].sum())
    return float(each[marks[0]].sum()) / whole if whole > 0 else None


def is_causal(run: ForwardRun, given: Tensor) -> bool | None:
    """In the child: exchanges the later half of the sequences ``given``; do the earlier outputs stay, and does the output at
    the first exchanged token follow it? (A model that shifts inside does not see the token that it predicts.)

    Along the dimension of the samples both always hold, so both dimensions are tried.
    """
    run.module.eval()
    answers = []
    with torch.no_grad():
        base = _outputs(run, given, None)
        for dim in (0, 1):
            answers += [_follows(a, b, dim, given.shape[dim]) for a, b in zip(base, _outputs(run, given, dim))
                        if a.dim() >= 3 and a.shape == b.shape and a.shape[dim] > 2][:1]
    return all(answers) if answers and None not in answers else None


def _follows(a: Tensor, b: Tensor, dim: int, given: int) -> bool | None:
    """Whether the first half is unchanged and what comes after it is not; None where nothing is changed at all."""
    difference = (a - b).abs() > 1e-5 * a.abs().max()
    half = a.shape[dim] // 2
    seen = a.shape[dim] != given or bool(difference.select(dim, half).any())
    return seen and not bool(difference.narrow(dim, 0, half).any()) if bool(difference.any()) else None


def sees_next(run: ForwardRun, given: Tensor, time: int) -> dict[str, Any] | None:
    """In the child: does the output from which token t is to be guessed move when token t and the later ones are exchanged?

    ``site`` is the first operation in whose result the places before t move: [samples, steps, ...] or [steps, samples, ...].
    """
    run.module.eval()
    half = given.shape[time] // 2
    with torch.no_grad():
        base, again, other = Recorder(), Recorder(), Recorder()
        outputs = [_outputs(run, given, dim, watch) for dim, watch in ((None, base), (None, again), (time, other))]
    pairs = [(a, b) for a, b, c in zip(outputs[0], outputs[2], outputs[1]) if a.shape == b.shape and a.dim() >= 3
             and given.shape[time] - a.shape[time] in (0, 1) and torch.equal(a, c)]
    if not pairs or not any(bool((a != b).any()) for a, b in pairs):
        return None
    sees = any(_moved(a, b, time, half - 1) for a, b in pairs)
    return {"sees": sees, "site": _first_moved(base.results, other.results, given.shape, time, half - 1) if sees else None}


def _moved(a: Tensor, b: Tensor, time: int, place: int) -> bool:
    """The mean change at this place is large beside the spread of the values."""
    return float((a - b).select(time, place).abs().mean()) > SEES * float(a.std())


def _first_moved(base: list[Result], other: list[Result], shape: torch.Size, time: int, place: int) -> Any:
    if [r.name for r in base] != [r.name for r in other]:
        return None
    for a, b in zip(base, other):
        one, two = a.values[0], b.values[0]
        stands = one.dim() == 3 and one.shape[:2] == shape[:2] == two.shape[:2] and one.is_floating_point()
        if stands and a.site is not None and _moved(one, two, time, place):
            return encode(a.site)
    return None


def _outputs(run: ForwardRun, given: Tensor, dim: int | None, watch: AbstractContextManager[Any] | None = None) -> list[Tensor]:
    torch.manual_seed(0)

    def changed(value: Any) -> Any:
        if value is not given or dim is None:
            return value.detach().clone() if isinstance(value, Tensor) else value
        half = value.shape[dim] // 2
        copy = value.clone()
        later = copy.narrow(dim, half, copy.shape[dim] - half)
        later.copy_(later.roll(1, 1 - dim))
        return copy
    args, kwargs = list(map(changed, run.args)), {name: changed(value) for name, value in run.kwargs.items()}
    with watch or nullcontext():
        output = run.module(*args, **kwargs)
    return [t for t in tensors_in(output, 6) if t.is_floating_point()]
