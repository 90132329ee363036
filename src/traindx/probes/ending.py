"""Is the end token ever a target? Looked at where a loss leaves targets out and the program says which token ends a sequence.

What a token means cannot be measured: the program's own names tell (a constant or an attribute called ``eos``), or the
``eos_token_id`` of a model's configuration or of a tokenizer, or the entry ``<eos>`` of a vocabulary.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed.ending import EndToken
from traindx.probes import sites, source
from traindx.probes.session import ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import readable
from traindx.probes.tokens import CLASS_LOSSES, MOST_TARGETS, grid_of, named

CALLS = 24
ENDS = re.compile(r"(^|_)(eos|eot|end_of_\w+)(_|$|\d)|^end_?(token|id)", re.IGNORECASE)
CONSTANTS = frozenset(("END", "STOP"))  # in capitals only: ``end`` is also where a slice stops
ENTRIES = ("<eos>", "</s>", "<end>", "<|endoftext|>", "<EOS>", "[EOS]", "<END>")  # of a vocabulary
NAMES = 8


def install(session: Session) -> None:
    session.add(Endings)


class Endings(Probe):
    """Counts over loss calls on detailed steps."""

    areas = ("data",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._run: ForwardRun | None = None
        self._seen: dict[int, EndToken] = {}

    def before_forward(self, run: ForwardRun) -> None:
        self._run = run if self.session.detailed else None

    def on_loss(self, run: LossRun) -> None:
        forward, target, ignore = self._run, run.target, run.arguments.get("ignore_index")
        if forward is None or not run.grad or run.function not in CLASS_LOSSES or not isinstance(ignore, int) or not readable(target):
            return
        if target.is_floating_point() or target.dim() not in (1, 2) or target.numel() > MOST_TARGETS:
            return
        for value in _sequences(forward):
            grid = grid_of(target, [(int(value.shape[0]), int(value.shape[1]))])
            if grid is not None and not grid.first and _predicts(grid.tokens, value, ignore):
                self._count(run, forward, grid.tokens, value, ignore)
                return

    def on_tick(self, step: int) -> None:
        self._run = None

    def _count(self, run: LossRun, forward: ForwardRun, targets: Tensor, inputs: Tensor, ignore: int) -> None:
        for token, name in list(named_ends(forward, run))[:NAMES]:
            seen = self._seen.get(token) or EndToken(
                step=self.session.step, key=f"ending-{token}", token=token, name=name, site=run.site, made_at=run.made_at, calls=0, rows=0,
                taught=0, left_out=0, named_at=source.first_line(rf"\b{re.escape(name.rpartition('.')[2])}\b.*(?<![=!<>])=(?!=)"))
            if seen.calls < CALLS:
                ended, left_out = endings(targets, inputs, ignore, token)
                taught = int(((targets == token) & (targets != ignore)).sum())
                self._seen[token] = seen = replace(seen, calls=seen.calls + 1, rows=seen.rows + ended, taught=seen.taught + taught,
                                                   left_out=seen.left_out + left_out)
                self.session.emit(seen)


def _sequences(run: ForwardRun) -> Iterator[Tensor]:
    """Integer arguments of the forward that may be token rows, labels excepted."""
    for name, value in named(run):
        if "label" not in name and "target" not in name and readable(value) and not value.is_floating_point() and value.dim() == 2:
            yield value.detach()


def _predicts(targets: Tensor, inputs: Tensor, ignore: int) -> bool:
    """Most targets that count are the input one step later: a language model, whether the shift was made before or after the model."""
    steps = min(targets.shape[1], inputs.shape[1] - 1)
    if targets.shape[0] != inputs.shape[0] or steps < 2:
        return False
    kept = targets[:, :steps] != ignore
    equal = (targets[:, :steps] == inputs[:, 1:1 + steps]) & kept
    return int(kept.sum()) >= 16 and int(equal.sum()) >= 0.9 * int(kept.sum())


def endings(targets: Tensor, inputs: Tensor, ignore: int, token: int) -> tuple[int, int]:
    """``(rows, left_out)``: rows whose targets end in ignored ones; those in which the first of these stands for ``token``."""
    steps = min(targets.shape[1], inputs.shape[1] - 1)
    kept = targets[:, :steps] != ignore
    last = torch.where(kept.any(1), steps - 1 - kept.flip(1).long().argmax(1), -1)
    ended = (last >= 0) & (last < steps - 1)
    follows = inputs[:, 1:1 + steps].gather(1, (last + 1).clamp(max=steps - 1)[:, None])[:, 0]
    return int(ended.sum()), int((ended & (follows == token)).sum())


def named_ends(forward: ForwardRun, run: LossRun) -> Iterator[tuple[int, str]]:
    """Tokens that the program calls an end: ``(token, name)``, each token once."""
    found: dict[int, str] = {}
    for name in ("generation_config", "config"):
        _note(found, getattr(getattr(forward.module, name, None), "eos_token_id", None), f"{name}.eos_token_id")
    for space in _spaces():
        for name, value in list(space.items()):
            if name in CONSTANTS or ENDS.search(name):
                _note(found, value, name)
            elif type(value) is dict:
                for entry in ENTRIES:
                    _note(found, value.get(entry), name)
            elif not isinstance(value, type) and type(value).__module__.partition(".")[0] not in ("torch", "builtins"):
                _note(found, vars(value).get("eos_token_id") if hasattr(value, "__dict__") else None, f"{name}.eos_token_id")
    yield from found.items()


def _note(found: dict[int, str], value: Any, name: str) -> None:
    if type(value) is int and value >= 0:
        found.setdefault(value, name)


def _spaces() -> Iterator[dict[str, Any]]:
    """Names of the user's functions that are running, and of their files."""
    frame = sys._getframe(2)
    seen: set[int] = set()
    while frame is not None:  # type: ignore[redundant-expr]
        if sites.is_user(frame.f_code.co_filename):
            for space in (frame.f_locals, frame.f_globals):
                if id(space) not in seen:
                    seen.add(id(space))
                    yield space
        frame = frame.f_back  # type: ignore[assignment]
