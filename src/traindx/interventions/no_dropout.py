"""Dropout 0: in layers, in functions, inside attention and between the layers of recurrent networks."""
from __future__ import annotations

import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.probes import patching

FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
BUILTINS = ("dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_",
            "feature_alpha_dropout", "feature_alpha_dropout_")


class NoDropout(Intervention):
    """A mask that the program draws by hand (``rand > p``) stays; so does what a library does in a kernel of its own."""

    IN_COMPILED = True
    NOTHING = Text("No dropout was active.", "没有起作用的 dropout。")

    def install(self) -> None:
        for name in FUNCTIONS:
            patching.replace(self.stack, F, name, self._function)
        for name in BUILTINS:
            patching.replace(self.stack, torch, name, self._builtin)
        patching.replace(self.stack, F, "scaled_dot_product_attention", self._attention)
        for kind in (nn.RNN, nn.LSTM, nn.GRU):
            patching.replace(self.stack, kind, "forward", self._recurrent)

    def _function(self, original: Any) -> Any:
        names = tuple(inspect.signature(original).parameters)
        touch, is_compiling = self._touch_if, torch.compiler.is_compiling

        def dropout(*args: Any, **kwargs: Any) -> Any:
            bound = dict(zip(names, args)) | kwargs
            if not is_compiling():  # counting would have it compiled anew in each step
                touch(bound.get("p", 0.5), bound.get("training", True))
            return original(**(bound | {"p": 0.0}))
        return patching.shadow(dropout, original)  # type: ignore[arg-type]

    def _builtin(self, original: Any) -> Any:
        touch, is_compiling = self._touch_if, torch.compiler.is_compiling

        def dropout(input: Any, p: float, train: bool) -> Any:
            if not is_compiling():
                touch(p, train)
            return original(input, 0.0, train)
        return patching.shadow(dropout, original)  # type: ignore[arg-type]

    def _attention(self, original: Any) -> Any:
        touch = self._touch_if

        def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                                         *args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling():
                touch(dropout_p, True)
            return original(query, key, value, attn_mask, 0.0, *args, **kwargs)
        return patching.dressed(scaled_dot_product_attention, original)

    def _recurrent(self, original: Any) -> Any:
        touch = self._touch_if

        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(self, *args, **kwargs)
            kept, self.dropout = self.dropout, 0.0
            touch(kept, self.training and self.num_layers > 1)
            try:
                return original(self, *args, **kwargs)
            finally:
                self.dropout = kept
        return patching.dressed(forward, original)

    def _touch_if(self, p: float, training: bool) -> None:
        if p and training and self.stage.active:
            self.touch()
