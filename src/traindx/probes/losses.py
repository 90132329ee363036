"""The seam of torch's loss functions, and which activation a tensor came from."""
from __future__ import annotations

import inspect
import math
import sys
import threading
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.observed.program import LossCall
from traindx.probes import modules, patching, sites
from traindx.probes.session import LossRun, Probe, Session
from traindx.probes.tensors import Marks, dtype_of, plain, readable, shape_of

LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
          "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "multi_margin_loss",
          "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "hinge_embedding_loss", "ctc_loss")
ACTIVATIONS = {"softmax": "softmax", "log_softmax": "log_softmax", "sigmoid": "sigmoid"}
ACTIVATION_MODULES = frozenset(("Softmax", "Softmax2d", "LogSoftmax", "Sigmoid", "LogSigmoid"))
FIRST_CALLS = 4  # of each call site, described in full
COUNTED_CLASSES = 64


class _Inside(threading.local):
    on = False


def install(session: Session) -> None:
    for name in LOSSES:
        patching.replace(session.stack, F, name, lambda original: _observed_loss(original, session))
    origins = Origins(session)
    for owner in (torch, Tensor):
        for name, label in ACTIVATIONS.items():
            patching.replace(session.stack, owner, name, partial(origins.observed, label=label))
    patching.replace(session.stack, F, "logsigmoid", lambda original: origins.observed(original, "logsigmoid"))
    session.origins = origins
    session.add(Losses)


def _observed_loss(original: Any, session: Session) -> Any:
    is_compiling, inside, thread = torch.compiler.is_compiling, _Inside(), session.thread
    parameters = inspect.signature(original).parameters
    names = tuple(parameters)
    defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}

    def observe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inside.on = True  # under a function mode the call comes back through this very name
        try:
            output = original(*args, **kwargs)
        finally:
            inside.on = False
        try:
            bound = defaults | dict(zip(names, args)) | kwargs  # the call went well: they fit
            site = sites.here(2)
            if session.coasting and not session.expects("loss", site):
                session.wake()
            run = LossRun(original.__name__, bound.pop(names[0]), bound.pop(names[1]), output, bound, site,
                          None if session.coasting else loss_module_site(), torch.is_grad_enabled())
        except Exception:
            return output
        session.call("on_loss", run)
        return output

    def loss(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or thread.busy or not session.active or inside.on:
            return original(*args, **kwargs)
        return observe(args, kwargs)
    return patching.shadow(loss, original)  # type: ignore[arg-type]


class Origins:
    """Softmax and sigmoid outputs, marked on their memory: found again through views and detach, with or without autograd."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.marks = Marks()

    def observed(self, original: Any, label: str) -> Any:
        session, marks, is_compiling = self.session, self.marks, torch.compiler.is_compiling

        def mark(output: Any) -> None:
            if type(output) is Tensor:
                try:
                    running = session.thread.modules
                    owner = modules.made_at(running[-1]) if running and type(running[-1]).__name__ in ACTIVATION_MODULES else None
                    marks.put(output, (label, sites.here(2), owner))
                except Exception:
                    pass  # batched, fake or sparse: no memory to mark

        def activation(*args: Any, **kwargs: Any) -> Any:
            output = original(*args, **kwargs)
            if not is_compiling() and not session.coasting and session.watching:
                mark(output)
            return output
        return patching.shadow(activation, original)  # type: ignore[arg-type]

    def of(self, tensor: Any) -> tuple[str, Site | None, Site | None] | None:
        """``(label, site, where its module was made)`` of the activation whose output this tensor is, or a view of."""
        if not isinstance(tensor, Tensor):
            return None
        try:
            return self.marks.get(tensor) or self._from_graph(tensor)
        except Exception:
            return None

    @staticmethod
    def _from_graph(tensor: Tensor) -> tuple[str, Site | None, Site | None] | None:
        """Through casts and reshapes that made new memory."""
        node, steps = tensor.grad_fn, 0
        while node is not None and steps < 6:
            name = type(node).__name__
            if name.startswith(("SoftmaxBackward", "LogSoftmaxBackward", "SigmoidBackward", "LogSigmoidBackward")):
                label = name.split("Backward")[0]
                return {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid", "LogSigmoid": "logsigmoid"}[label], None, None
            if not name.startswith(("ToCopy", "Clone", "View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "T", "Permute", "Transpose")):
                return None
            node, steps = node.next_functions[0][0] if node.next_functions else None, steps + 1
        return None


class Losses(Probe):
    """Describes loss calls: the first of each place and mode, then on detailed steps; validation losses are averaged per pass."""

    areas = ("loss", "shape", "curve")
    always = ("on_loss",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._calls = 0
        self._per_site: dict[tuple[int, str, bool], int] = {}
        self._validation: list[tuple[float, int]] = []
        self._means = False  # the loss that is trained on is a mean

    def on_loss(self, run: LossRun) -> None:
        self.session.event("loss", run.site, 0, run.function if run.grad else f"{run.function} no_grad")
        if run.grad and plain(run.output):
            self.session.has_read(run.output, run.value)
            if run.value is not None and not math.isfinite(run.value):
                self.session.wake()
        if self.session.coasting:
            return
        self._calls += 1
        if run.grad:
            self._means = run.arguments.get("reduction", "mean") == "mean"
        elif (value := run.value) is not None:
            sums = self._means and run.arguments.get("reduction") == "sum"  # the sum of a pass is divided by the program, later
            self._validation.append((value / terms_of(run) if sums else value,
                                     int(run.target.shape[0]) if isinstance(run.target, Tensor) and run.target.dim() else 1))
        key = (id(run.site), run.function, run.grad)
        count = self._per_site[key] = self._per_site.get(key, 0) + 1
        if count <= FIRST_CALLS or (self.session.detailed and count < 100_000):
            self._describe(run)

    def _describe(self, run: LossRun) -> None:
        call = LossCall(
            step=self.session.step, key=f"loss-{self._calls}", call=self._calls, function=run.function, site=run.site,
            made_at=run.made_at, grad=run.grad, model_training=None, value=run.value,
            reduction=str(run.arguments.get("reduction", "mean")), input_shape=shape_of(run.input), target_shape=shape_of(run.target),
            input_dtype=dtype_of(run.input), target_dtype=dtype_of(run.target), requires_grad=getattr(run.input, "requires_grad", False),
            label_smoothing=float(run.arguments.get("label_smoothing") or 0.0), ignore_index=run.arguments.get("ignore_index"),
            weight=_weights(run.arguments.get("weight")), pos_weight=run.arguments.get("pos_weight") is not None,
            pos_weights=_weights(run.arguments.get("pos_weight")))
        origin = self.session.origins.of(run.input)
        if origin:
            call = replace(call, origin=origin[0], origin_site=origin[1], origin_made_at=origin[2])
        call = replace(call, **input_facts(run.input, run.function), **target_facts(run.target, call.ignore_index))
        self.session.emit(call)
        if isinstance(run.output, Tensor) and run.output.requires_grad and run.output.grad_fn is not None:
            run.output.register_hook(lambda gradient: self._weigh(call, gradient))

    def _weigh(self, call: LossCall, gradient: Tensor) -> None:
        """In backward: how much of the root this loss is."""
        value = gradient.detach()
        if readable(value):
            self.session.emit(replace(call, weight_in_root=float(value.float().mean())))

    def on_tick(self, step: int) -> None:
        if self._validation:
            total = sum(count for _, count in self._validation)
            self.session.metric("val_loss", sum(value * count for value, count in self._validation) / max(total, 1))
            self._validation.clear()

    def at_end(self) -> None:
        self.on_tick(self.session.step)


def terms_of(run: LossRun) -> int:
    """Over how many terms this loss would take its mean (unweighted): targets that are not ignored, rows of probabilities, or elements."""
    given, target = run.input, run.target
    if run.function not in ("cross_entropy", "nll_loss") or not isinstance(target, Tensor):
        return max(given.numel(), 1) if isinstance(given, Tensor) else 1
    if target.is_floating_point():
        return max(target.numel() // max(target.shape[1 if target.dim() > 1 else 0], 1), 1)
    ignored = run.arguments.get("ignore_index", -100)
    return max(int((target != ignored).sum()) if readable(target) else target.numel(), 1)


def loss_module_site() -> Site | None:
    """Where the loss module whose forward is running was made, if any; looked up on the stack, for loss modules are no roots."""
    frame: FrameType | None = sys._getframe(3)
    for _ in range(4):
        if frame is None:
            return None
        module = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if isinstance(module, nn.Module):
            return modules.made_at(module)
        frame = frame.f_back
    return None


def input_facts(value: Any, function: str) -> dict[str, Any]:
    """Range, mean and std of the loss input; sums and logsumexp of its rows over the class dimension."""
    if not readable(value) or not value.is_floating_point() or value.numel() == 0:
        return {}
    value = value.detach().float()
    low, high = torch.aminmax(value)
    facts: dict[str, Any] = {"input_min": float(low), "input_max": float(high), "input_mean": float(value.mean()),
                             "input_std": float(value.std(unbiased=False))}
    if function in ("cross_entropy", "nll_loss", "kl_div") and value.dim() >= 1:
        dim = 1 if value.dim() > 1 and function != "kl_div" else value.dim() - 1
        sums = value.sum(dim)
        facts |= {"class_dim": dim, "row_sum_min": float(sums.min()), "row_sum_max": float(sums.max()),
                  "row_logsumexp": float(value.logsumexp(dim).abs().max())}
    return facts


def target_facts(target: Any, ignore_index: Any) -> dict[str, Any]:
    if not readable(target) or target.numel() == 0 or target.is_complex():
        return {}
    target = target.detach()
    if target.is_floating_point():
        value = target.float()
        low, high = torch.aminmax(value)
        return {"target_min": float(low), "target_max": float(high), "target_mean": float(value.mean()),
                "target_std": float(value.std(unbiased=False))}
    kept = target.reshape(-1).long()
    ignored = 0
    if isinstance(ignore_index, int):
        keep = kept != ignore_index
        ignored = int((~keep).sum())
        kept = kept[keep]
    if kept.numel() == 0:
        return {"ignored": ignored}
    low, high = torch.aminmax(kept)
    facts: dict[str, Any] = {"target_min": float(low), "target_max": float(high), "ignored": ignored}
    if int(low) >= 0 and int(high) < COUNTED_CLASSES:
        counts = torch.bincount(kept).tolist()
        facts["target_counts"] = {i: n for i, n in enumerate(counts) if n}
    return facts


def _weights(weight: Any) -> tuple[float, ...] | None:
    if not readable(weight) or weight.numel() > COUNTED_CLASSES:
        return None
    return tuple(float(w) for w in weight.detach().reshape(-1).tolist())

