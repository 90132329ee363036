"""``nll_loss`` that is given logits gets their log softmax."""
from __future__ import annotations

import torch

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall
from traindx.probes.tensors import plain

NEAR = 1e-2


class LogSoftmaxFirst(Intervention):
    """Log-probabilities are left as they are: their exponentials sum to 1."""

    NOTHING = Text("No nll_loss was given anything but log-probabilities.", "nll_loss 收到的都是对数概率。")

    def on_loss_call(self, call: LossCall) -> None:
        value = call.input
        if call.function != "nll_loss" or not plain(value) or not value.is_floating_point():
            return
        dim = 1 if value.dim() > 1 else 0
        if bool((torch.logsumexp(value.detach().float(), dim).abs() > NEAR).any()):
            call.input, call.changed = torch.log_softmax(value, dim), True
            self.touch()
