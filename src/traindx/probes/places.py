"""Where modules were made that a finding may point at: those without parameters are in no other observation."""
from __future__ import annotations

from torch import nn

from traindx.core.observed.layout import ModulePlaces, Place
from traindx.probes.modules import made_at
from traindx.probes.session import ForwardRun, Probe, Session

POINTED_AT = (nn.Softmax, nn.Softmax2d, nn.LogSoftmax, nn.Sigmoid, nn.LogSigmoid, nn.RNNBase, nn.MultiheadAttention,
              nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder, nn.TransformerEncoderLayer,
              nn.TransformerDecoderLayer)
ROOTS = 32
PLACES = 64  # of a root


def install(session: Session) -> None:
    session.add(Places)


class Places(Probe):
    """Once for each root module."""

    areas = ("shape", "loss")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seen: set[int] = set()

    def before_forward(self, run: ForwardRun) -> None:
        if run.model in self._seen or len(self._seen) >= ROOTS:
            return
        self._seen.add(run.model)
        named = run.module.named_modules()
        found = [place_of(path, module) for path, module in named if isinstance(module, POINTED_AT)]
        if found:
            self.session.emit(ModulePlaces(step=self.session.step, key=f"places-{run.model}", model=run.model,
                                           places=tuple(found[:PLACES])))


def place_of(path: str, module: nn.Module) -> Place:
    batch_first = getattr(module, "batch_first", None)
    return Place(path, type(module).__name__, made_at(module), batch_first if isinstance(batch_first, bool) else None)
