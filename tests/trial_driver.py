"""The hooks of a trial's tracer, as small as they can be: gauges are tested on real programs with them."""
from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.loss import _Loss
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from traindx.core.trials import Gauge
from traindx.gauges import Watchers
from traindx.probes import patching, sites

LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "huber_loss")

sites._user_files[__file__] = False  # as the tracer's own files are


class Facts(dict):
    def take(self, message):
        name, value = message["fact"]
        self[name] = value


@contextmanager
def trial(*gauges: Gauge):
    """Yields the facts; inside, whatever trains is measured."""
    facts = Facts()
    watchers = Watchers(gauges, facts.take)
    with ExitStack() as stack:
        _patch(stack, watchers)
        watchers.tell("begin", stack)
        yield facts
        watchers.tell("at_end")


def _patch(stack, watchers):
    depth = [0]
    patching.replace(stack, nn.Module, "__call__", lambda original: _call(original, watchers, depth))
    for name in LOSSES:
        patching.replace(stack, F, name, lambda original: _loss(original, watchers))
    patching.replace(stack, torch.autograd, "_engine_run_backward", lambda original: _backward(original, watchers))
    steps = [0]

    def after(optimizer, args, kwargs):
        steps[0] += 1
        watchers.tell("after_step", optimizer, steps[0])
    stack.callback(register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: watchers.tell("before_step", optimizer)).remove)
    stack.callback(register_optimizer_step_post_hook(after).remove)


def _call(original, watchers, depth):
    def __call__(self, *args, **kwargs):
        if watchers.busy or depth[0] or not torch.is_grad_enabled() or isinstance(self, _Loss):
            return original(self, *args, **kwargs)
        watchers.tell("before_forward", self, args, kwargs)
        depth[0] += 1
        try:
            output = original(self, *args, **kwargs)
        finally:
            depth[0] -= 1
        watchers.tell("on_forward", self, args, kwargs, output)
        return output
    return __call__


def _loss(original, watchers):
    names, here, Tensor, enabled = tuple(inspect.signature(original).parameters), sites.here, torch.Tensor, torch.is_grad_enabled

    def loss(*args, **kwargs):
        value = original(*args, **kwargs)
        if enabled() and not watchers.busy and isinstance(value, Tensor):
            bound = dict(zip(names, args)) | kwargs
            watchers.tell("on_loss", original.__name__, bound.pop("input"), bound.pop("target"), value, bound, here(2))
        return value
    return patching.shadow(loss, original)


def _backward(original, watchers):
    def run(roots, *args, **kwargs):
        if kwargs.get("accumulate_grad") and not watchers.busy:
            watchers.tell("on_backward", roots[0])
        return original(roots, *args, **kwargs)
    return run
