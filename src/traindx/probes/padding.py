"""Does padding change what is computed of the real tokens? Asked by replaying a root on rows cut to their own length.

Only rows of whole numbers are looked at whose ends repeat one token that occurs nowhere else: that is padding, while a zero in
a table or a board also stands between others. Cutting is always allowed, where widening may exceed a table of positions.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from traindx.core.codec import encode
from traindx.core.observed.padding import PaddingReplay
from traindx.probes import replay
from traindx.probes.mixing import Recorder, Result, mapped
from traindx.probes.session import ForwardRun, Probe, Session
from traindx.probes.tensors import plain, readable, tensors_in

ROWS = 8  # replayed
LAST_STEP = 64
LEAST_CUT = 2  # columns of padding that can be cut
LEAST_REAL = 64  # tokens before the padding: among them the filler would occur by chance
SAME = 1e-4  # of the largest value: products of other widths are rounded otherwise
PARAMETERS = 200_000_000


def install(session: Session) -> None:
    session.add(Padding)


class Padding(Probe):
    """Asks once for each root whose input is padded."""

    areas = ("shape",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._settled: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._waiting = False
        self._widths: dict[int, set[int]] = {}

    def after_forward(self, run: ForwardRun) -> None:
        if not self.session.detailed or not run.grad or run.failed or not self.session.is_early(LAST_STEP):
            return
        lead = _token_grid(run)
        if lead is None:
            return
        self._widths.setdefault(run.model, set()).add(int(lead.shape[1]))
        if self._waiting or run.module in self._settled:
            return
        found = padded_rows(lead)
        if found is not None and sum(p.numel() for p in run.module.parameters()) <= PARAMETERS:
            self._ask(run, *found, lead.shape)

    def _ask(self, run: ForwardRun, rows: Tensor, length: int, token: int, shape: torch.Size) -> None:
        facts: dict[str, Any] = {
            "step": self.session.step, "key": f"padding-{run.model}", "model": run.model, "class_name": type(run.module).__name__,
            "site": run.site, "token": token, "width": int(shape[1]), "length": length}
        module, widths = run.module, self._widths[run.model]

        def then(outcome: replay.Outcome) -> PaddingReplay:
            self._waiting = False
            said = outcome.value or {"change": None, "why": outcome.why}
            if said["change"] is not None:
                self._settled.add(module)
            return PaddingReplay(**facts, widths=len(widths), **_decoded(said))

        self._waiting = True
        cut = (rows, int(shape[0]), int(shape[1]), length)
        if not replay.ask(self.session, "padding", lambda: replayed(run, *cut), then, (module, *tensors_in((run.args, run.kwargs)))):
            self._waiting = False


def _decoded(said: dict[str, Any]) -> dict[str, Any]:
    from traindx.core.codec import decode
    from traindx.core.observed import Site
    site = said.get("op_site")
    return {**said, "op_site": decode(Site, site) if site else None}


def _token_grid(run: ForwardRun) -> Tensor | None:
    """The first argument that is [rows, steps] of whole numbers."""
    for tensor in tensors_in((run.args, run.kwargs), 6):
        if readable(tensor) and tensor.dim() == 2 and tensor.dtype in (torch.int64, torch.int32):
            rows, steps = tensor.shape
            return tensor if rows >= 2 and steps > LEAST_CUT and rows != steps else None
    return None


def padded_rows(tokens: Tensor) -> tuple[Tensor, int, int] | None:
    """``(rows, length, token)``: the shortest rows, how far the longest of them reaches, and the filler; None without padding."""
    token = tokens[:, -1].mode().values
    filler = tokens == token
    tails = filler.flip(1).long().cumprod(1).flip(1).bool()
    lengths = (~tails).sum(1)
    elsewhere = int((filler & ~tails).sum())
    if elsewhere or int(lengths.sum()) < LEAST_REAL or int(lengths.min()) == int(lengths.max()):
        return None
    order = lengths.argsort()
    order = order[lengths[order] > 0][:ROWS]
    length = int(lengths[order].max()) if len(order) >= 2 else 0
    while len(order) > 2 and length > tokens.shape[1] - LEAST_CUT:
        order = order[:-1]
        length = int(lengths[order].max())
    return (order, length, int(token)) if 0 < length <= tokens.shape[1] - LEAST_CUT else None


# -- in the child --


def replayed(run: ForwardRun, rows: Tensor, batch: int, width: int, length: int) -> dict[str, Any]:
    """Outputs for these rows as wide as they came, and cut to ``length``; how far they differ, and from which operation on."""
    run.module.eval()
    with torch.no_grad():
        wide, again, cut = (Recorder() for _ in range(3))
        outputs = [_output(run, picked, watch) for picked, watch in (
            (_picked(rows, batch, width, width), wide), (_picked(rows, batch, width, width), again), (_picked(rows, batch, width, length), cut))]
    lengths = _lengths(run, rows, width)
    changes = [_change(a, b, lengths) for a, b in zip(outputs[0], outputs[2])]
    known = [change for change in changes if change is not None]
    if not known or any(not torch.equal(a, b) for a, b in zip(outputs[0], outputs[1]) if a.shape == b.shape):
        return {"change": None, "why": "the outputs cannot be compared"}
    return {"change": max(known), **_first_different(wide.results, cut.results, lengths)}


def _picked(rows: Tensor, batch: int, width: int, length: int) -> Callable[[Tensor], Tensor]:
    """Rows chosen where dim 0 holds the batch, and every later dimension as wide as the sequences cut; [width, width] is a mask."""
    def pick(tensor: Tensor) -> Tensor:
        tensor = tensor.detach()
        by_row = tensor.dim() > 0 and tensor.shape[0] == batch
        picked = tensor[rows] if by_row else tensor
        for dim in range(1 if by_row else 0, picked.dim()):
            if picked.shape[dim] == width:
                picked = picked.narrow(dim, 0, length)
        return picked.clone()
    return pick


def _output(run: ForwardRun, pick: Callable[[Tensor], Tensor], watch: Recorder) -> list[Tensor]:
    torch.manual_seed(0)
    args, kwargs = mapped(run.args, pick), mapped(run.kwargs, pick)
    with watch:
        output = run.module(*args, **kwargs)
    return [t.detach().clone() for t in tensors_in(output, 2) if plain(t) and t.is_floating_point() and t.dim() >= 2]


def _lengths(run: ForwardRun, rows: Tensor, width: int) -> Tensor:
    lead = _token_grid(run)
    assert lead is not None
    tokens = lead[rows]
    tails = (tokens == lead[:, -1].mode().values).flip(1).long().cumprod(1).flip(1).bool()
    return (~tails).sum(1)


def _change(wide: Tensor, cut: Tensor, lengths: Tensor) -> float | None:
    """Mean difference over real places, in standard deviations of the output over rows; None where the two are of other kinds."""
    a, b = _aligned(wide, cut)
    if a is None or a.shape[0] != len(lengths):
        return None
    real = _real(a, lengths)
    spread = float(b[real].std()) if real is not None else float(b.std(0).mean())
    difference = (a - b).abs()
    mean = float(difference[real].mean() if real is not None else difference.mean())
    if mean <= SAME * float(b.abs().max()):
        return 0.0
    return mean / spread if spread > 0 else None


def _aligned(wide: Tensor, cut: Tensor) -> tuple[Any, Any]:
    """Both without the columns that only the wide one has."""
    if wide.dim() != cut.dim() or any(n < m for n, m in zip(wide.shape, cut.shape)):
        return None, None
    for dim, size in enumerate(cut.shape):
        wide = wide.narrow(dim, 0, size)
    return wide, cut


def _real(values: Tensor, lengths: Tensor) -> Tensor | None:
    """Where a [rows, steps, ...] result stands for real tokens; None for one result a row."""
    if values.dim() < 3:
        return None
    steps = torch.arange(values.shape[1])
    return (steps < lengths[:, None]).nonzero(as_tuple=False).unbind(1) if values.shape[1] >= int(lengths.max()) else None  # type: ignore[return-value]


def _first_different(wide: list[Result], cut: list[Result], lengths: Tensor) -> dict[str, Any]:
    """The first operation that gives another result for the real tokens."""
    if [r.name for r in wide] != [r.name for r in cut]:
        return {}
    for a, b in zip(wide, cut):
        one, other = a.values[0], b.values[0]
        by_row = one.shape[:1] == other.shape[:1] == lengths.shape and one.is_floating_point() and one.dim() >= 2
        if by_row and (_change(one, other, lengths) or 0.0) > 0.0:
            return {"op": a.name, "op_site": encode(a.site) if a.site else None}
    return {}
