"""Does a sample's output depend on the others of its batch? Asked by replaying a root with one sample exchanged.

Where it does, the replay also finds the operation: all results of two runs are compared one by one, and from the
output backwards the first operation is taken that gets its samples apart and gives them mixed.
"""
from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.data import default_collate

from traindx.core.codec import decode, encode
from traindx.core.observed import Site
from traindx.core.observed.layout import BatchMixing, LeadSizes
from traindx.core.observed.ops import Op
from traindx.probes import replay, sites
from traindx.probes.loaders import Loaders
from traindx.probes.modules import made_at
from traindx.probes.ops import Traces
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import plain, readable, tensors_in

ROOTS = 3  # of a step that are replayed
LAST_STEP = 64
PARAMETERS = 200_000_000
KEPT_ELEMENTS = 60_000_000  # of intermediate results in the child
TOLERANCE = 1e-5  # of the largest value: rows of one product do not differ more by rounding
SIZES = 8
MOVING = ("t", "T", "mT", "transpose", "permute", "movedim", "swapaxes", "view", "reshape", "flip", "roll")
TOLD = (nn.RNNBase, nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer,
        nn.TransformerEncoder, nn.TransformerDecoder, nn.Transformer, nn.Softmax, nn.LogSoftmax)


def install(session: Session) -> None:
    session.add(Mixing)


@dataclass
class _Call:
    run: ForwardRun
    lead: Tensor
    shapes: list[tuple[int, ...]]


@dataclass(frozen=True)
class Batch:
    """How many samples, in which dimension of the inputs, and how that is known."""

    size: int
    dim: int
    evidence: str


class Mixing(Probe):
    """Asks once for each root, on an early step whose batch is known."""

    areas = ("shape",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._calls: list[_Call] = []
        self._targets: list[tuple[int, ...]] = []
        self._settled: set[int] = set()
        self._waiting = False
        self._sizes: dict[int, list[int]] = {}
        self._loaded: tuple[int, bool] | None = None  # samples in the last batch, and whether by the default collate
        self._loaded_tensors: list[weakref.ref[Tensor]] = []

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        if not self.session.detailed:
            return
        tensors = [t for t in tensors_in(batch, 8) if t.dim() > 0]
        default = getattr(loader, "collate_fn", None) is default_collate
        sizes = {int(t.shape[0]) for t in tensors}
        made = Loaders.instance.latest  # the loader itself may be gone: for ... in DataLoader(...)
        self._loaded = None
        if default and len(sizes) == 1:
            self._loaded = sizes.pop(), True
        elif not default and made is not None and isinstance(made.batch_size, int):
            self._loaded = made.batch_size, False
        self._loaded_tensors = [weakref.ref(t) for t in tensors]

    def after_forward(self, run: ForwardRun) -> None:
        if not self.session.detailed or not run.grad or run.failed or len(self._calls) >= ROOTS:
            return
        lead = next(tensors_in((run.args, run.kwargs), 1), None)
        if lead is None or lead.dim() == 0:
            return
        sizes = self._sizes.setdefault(run.model, [])
        if int(lead.shape[0]) not in sizes and len(sizes) < SIZES:
            sizes.append(int(lead.shape[0]))
        if self._wanted(run):
            shapes = [tuple(t.shape) for t in tensors_in(run.output, 4)]
            self._calls.append(_Call(run, lead, shapes))

    def _wanted(self, run: ForwardRun) -> bool:
        due = self.session.is_early(LAST_STEP) and not self._waiting and run.model not in self._settled
        return due and all(call.run.model != run.model for call in self._calls)

    def on_loss(self, run: LossRun) -> None:
        if self._calls and isinstance(run.target, Tensor):
            self._targets.append(tuple(run.target.shape))

    def before_backward(self, run: BackwardRun) -> None:
        calls, self._calls = self._calls, []
        targets, self._targets = self._targets, []
        if not calls:
            return
        batch = next((found for call in calls if (found := self._batch_of(call, targets))), None)
        if batch is None:
            return
        chosen = [call for call in calls if _fits(call, batch)]
        if chosen:
            self._ask(chosen, batch)

    def on_tick(self, step: int) -> None:
        self._calls, self._targets = [], []

    def at_end(self) -> None:
        for model, sizes in self._sizes.items():
            self.session.emit(LeadSizes(step=self.session.step, key=f"sizes-{model}", model=model, sizes=tuple(sizes)))

    # -- which dimension holds the samples --

    def _batch_of(self, call: _Call, targets: list[tuple[int, ...]]) -> Batch | None:
        return self._from_loader(call.lead) or _gathered(call.lead) or _from_labels(call, targets)

    def _from_loader(self, lead: Tensor) -> Batch | None:
        if self._loaded is None or not any(_same_memory(ref(), lead) for ref in self._loaded_tensors):
            return None
        size, default = self._loaded
        if default:
            turned = lead.dim() > 1 and lead.shape[1] == size and not lead.is_contiguous()
            return Batch(size, 0, "loader") if lead.shape[0] == size and not turned else None
        dims = [dim for dim, n in enumerate(lead.shape[:2]) if n == size]
        return Batch(size, dims[0], "loader") if len(dims) == 1 else None

    # -- asking --

    def _ask(self, calls: list[_Call], batch: Batch) -> None:
        about = [thing for call in calls
                 for thing in (call.run.module, *tensors_in((call.run.args, call.run.kwargs)))]
        step = self.session.step

        def function() -> list[dict[str, Any]]:
            return [replayed(call.run, batch) for call in calls]

        def then(outcome: replay.Outcome) -> None:
            self._waiting = False
            for place, call in enumerate(facts):
                value = outcome.value[place] if outcome.value else {"mixes": None, "why": outcome.why}
                if value["mixes"] is not None:
                    self._settled.add(call["model"])
                self.session.emit(decode(BatchMixing, {**call, **value}))

        facts = [{"step": step, "key": f"mixing-{call.run.model}", "model": call.run.model, "batch": batch.size,
                  "dim": batch.dim, "evidence": batch.evidence, "class_name": type(call.run.module).__name__,
                  "site": encode(call.run.site)} for call in calls]
        self._waiting = True
        if not replay.ask(self.session, "mixing", function, then, about):
            self._waiting = False


def _same_memory(one: Tensor | None, other: Tensor) -> bool:
    if one is other:
        return True
    try:
        return one is not None and one.untyped_storage() is other.untyped_storage()
    except Exception:
        return False


def _gathered(lead: Tensor) -> Batch | None:
    """Rows picked by an index tensor in the traced step: whatever is picked by index are samples."""
    tracer = Traces.tracer
    if not tracer.armed:
        return None
    at = tracer.maker_of(lead)
    for _ in range(6):
        if at < 0:
            return None
        op = tracer.ops[at]
        if _picks_rows(op):
            return Batch(op.shape[0], 0, "gather") if op.shape[0] == lead.shape[0] else None
        if op.name in MOVING or not op.inputs or op.inputs[0].shape[:1] != op.shape[:1]:
            return None
        at = op.inputs[0].op
    return None


def _picks_rows(op: Op) -> bool:
    scalars = op.scalars or {}
    indexed = op.name == "__getitem__" and len(op.inputs) == 2 and len(op.inputs[1].shape) == 1 and not scalars
    return indexed or (op.name == "index_select" and scalars.get("1", scalars.get("dim")) == "0")


def _from_labels(call: _Call, targets: list[tuple[int, ...]]) -> Batch | None:
    """One label for each entry of the first dimension, which no other dimension of the input can be taken for."""
    lead = call.lead
    ids = not lead.is_floating_point() and lead.dim() == 2
    n = int(lead.shape[0])
    if not (ids or lead.dim() >= 3) or list(lead.shape).count(n) != 1 or n < 3 or 1 in lead.shape[:2]:
        return None
    for target in targets:
        a_label_each = len(target) == 1 or (len(target) == 2 and target[1] not in lead.shape[1:])
        an_output_each = any(shape[:1] == (n,) and len(shape) <= 2 for shape in call.shapes)
        if target[:1] == (n,) and a_label_each and an_output_each:
            return Batch(n, 0, "labels")
    return None


def _fits(call: _Call, batch: Batch) -> bool:
    has_samples = batch.size >= 3 and call.lead.dim() > batch.dim and call.lead.shape[batch.dim] == batch.size
    gives_samples = any(n % batch.size == 0 and n > 0 for shape in call.shapes[:1] for n in shape)
    small = sum(p.numel() for p in call.run.module.parameters()) <= PARAMETERS
    on_cpu = all(readable(t) for t in tensors_in((call.run.args, call.run.kwargs)))
    return has_samples and gives_samples and small and on_cpu


# -- in the child --


@dataclass
class Result:
    """One operation of a run. ``inputs`` are indices of results, ``outputs`` its tensors."""

    name: str
    site: Site | None
    inputs: list[tuple[int, int]]
    input_shapes: list[tuple[int, ...]]
    values: list[Tensor]
    kept: list[Tensor]
    modules: list[nn.Module]
    scalars: dict[str, Any]


@dataclass
class Recorder(TorchFunctionMode):  # type: ignore[misc]
    """Every operation of a run with its results; too many elements end the recording, not the run."""

    results: list[Result] = field(default_factory=list)
    makers: dict[int, tuple[int, int]] = field(default_factory=dict)
    elements: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = list(tensors_in((args, list(kwargs.values())), 12))
        output = func(*args, **kwargs)
        made = [t for t in tensors_in(output, 6) if plain(t)]
        if made and self.elements < KEPT_ELEMENTS:
            index = len(self.results)
            self.elements += sum(t.numel() for t in made)
            scalars = {"dim": kwargs.get("dim", next((a for a in args[1:3] if isinstance(a, int)), None))}
            self.results.append(Result(
                getattr(func, "__name__", ""), sites.here(2), [self.makers.get(id(t), (-1, 0)) for t in given],
                [tuple(t.shape) for t in given], [t.detach().clone() for t in made], made, _running(), scalars))
            for place, tensor in enumerate(made):
                self.makers[id(tensor)] = (index, place)
        return output


def _running() -> list[nn.Module]:
    """The recurrent, attention or softmax module that is running and those of torch around it, outermost first."""
    frame: FrameType | None = sys._getframe(2)
    found: list[nn.Module] = []
    while frame is not None:
        module = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if isinstance(module, TOLD):
            found.insert(0, module)
        elif isinstance(module, nn.Module) and not type(module).__module__.startswith("torch.nn"):
            break  # the user's own
        frame = frame.f_back
    return found


def replayed(run: ForwardRun, batch: Batch) -> dict[str, Any]:
    """Runs the module on its batch and twice with one sample exchanged for another; what follows from it."""
    run.module.eval()
    first, second = 0, 1
    with torch.no_grad():
        base, again = _output(run, None, batch), _output(run, None, batch)
        if len(base) != len(again) or any(bool(_changed(a, b).any()) for a, b in zip(base, again)):
            return {"mixes": None, "why": "the output differs from call to call"}
        masks = [_masks(base, _output(run, sample, batch)) for sample in (first, second)]
        if any(mask is None for mask in masks) or not masks[0] or not all(bool(m[0].any()) for m in masks if m):
            return {"mixes": None, "why": "the output did not change with its sample"}
        pair = [m[0] for m in masks if m]
        if apart(pair[0], pair[1], batch.size) is not None:
            return {"mixes": False}
        along = [dim for dim, n in enumerate(pair[0].shape) if n == batch.size]
        if not along:
            return {"mixes": None, "why": "no dimension of the output holds the samples"}
        others = len(_indices(pair[0], along[0]) - {first})
        return {"mixes": True, "others": others, **_blame(run, batch)}


def _output(run: ForwardRun, sample: int | None, batch: Batch, watch: Recorder | None = None) -> list[Tensor]:
    """Outputs of one run; ``sample`` is given the last sample's inputs."""
    torch.manual_seed(0)
    swap = _exchanged(sample, batch)
    args, kwargs = mapped(run.args, swap), mapped(run.kwargs, swap)
    if watch is None:
        output = run.module(*args, **kwargs)
    else:
        with watch:
            output = run.module(*args, **kwargs)
    return [t.detach().clone() for t in tensors_in(output, 4) if plain(t)]


def _exchanged(sample: int | None, batch: Batch) -> Callable[[Tensor], Tensor]:
    def exchange(tensor: Tensor) -> Tensor:
        copy = tensor.detach().clone()
        if sample is not None and copy.dim() > batch.dim and copy.shape[batch.dim] == batch.size:
            copy.select(batch.dim, sample).copy_(copy.select(batch.dim, batch.size - 1).clone())
        return copy
    return exchange


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Tensors in nested plain containers, changed; everything else as it is."""
    if isinstance(value, Tensor):
        return change(value) if plain(value) else value
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change) for item in value)
    if type(value) is dict:
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def _changed(a: Tensor, b: Tensor) -> Tensor:
    """Elements that differ by more than rounding."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return torch.ones((), dtype=torch.bool)
    if not a.is_floating_point():
        return a != b
    a, b = torch.nan_to_num(a.float()), torch.nan_to_num(b.float())
    scale = float(a.abs().max()) if a.numel() else 0.0
    return (a - b).abs() > TOLERANCE * scale


def _masks(base: list[Tensor], other: list[Tensor]) -> list[Tensor] | None:
    if len(base) != len(other) or any(a.shape != b.shape for a, b in zip(base, other)):
        return None
    return [_changed(a, b) for a, b in zip(base, other)]


def apart(first: Tensor, second: Tensor, batch: int) -> int | None:
    """The dimension in which samples 0 and 1 of ``batch`` lie apart: it holds them alone, or merged with another."""
    for dim, n in enumerate(first.shape):
        if n == 0 or n % batch:
            continue
        per = n // batch
        rows = [_indices(first, dim), _indices(second, dim)]
        major = all(row // per == sample for sample, found in enumerate(rows) for row in found)
        minor = all(row % batch == sample for sample, found in enumerate(rows) for row in found)
        if major or minor:
            return dim
    return None


def _indices(mask: Tensor, dim: int) -> set[int]:
    """Indices along ``dim`` at which anything is set."""
    return set(mask.movedim(dim, 0).reshape(mask.shape[dim], -1).any(1).nonzero().flatten().tolist())


def _blame(run: ForwardRun, batch: Batch) -> dict[str, Any]:
    """The operation that mixes, found from the output backwards."""
    runs = [Recorder() for _ in range(3)]
    for sample, watch in zip((None, 0, 1), runs):
        _output(run, sample, batch, watch)
    names = [[(r.name, len(r.values)) for r in watch.results] for watch in runs]
    if names[0] != names[1] or names[0] != names[2] or not names[0]:
        return {}
    masks = [[(_changed(a, b), _changed(a, c)) for a, b, c in zip(one.values, two.values, three.values)]
             for one, two, three in zip(*(watch.results for watch in runs))]
    culprit = _last_mixing(runs[0].results, masks, batch.size)
    return _told(runs[0].results[culprit], masks, batch) if culprit is not None else {}


def _last_mixing(results: list[Result], masks: list[list[tuple[Tensor, Tensor]]], batch: int) -> int | None:
    """Backwards along operands whose samples are mixed, until an operation has none.

    An operation that picks by value (rows of an expert) has a length that hangs on the samples: what it picked looks mixed and
    is not its doing, so that such a way ends nowhere.
    """
    stack = [i for i in range(len(results)) if any(_mixed(pair, batch) for pair in masks[i])][-1:]
    seen = set(stack)
    while stack:
        at = stack.pop()
        mixed = [index for index, place in results[at].inputs if index >= 0 and _mixed(masks[index][place], batch)]
        if not mixed and not _sized_by_values(results[at], masks[at]):
            return at
        stack += [index for index in reversed(mixed) if index not in seen]
        seen.update(mixed)
    return None


def _mixed(pair: tuple[Tensor, Tensor], batch: int) -> bool:
    touched = bool(pair[0].any()) and bool(pair[1].any())
    return touched and (pair[0].shape != pair[1].shape or apart(pair[0], pair[1], batch) is None)


def _sized_by_values(result: Result, masks: list[tuple[Tensor, Tensor]]) -> bool:
    """Shapes that differ from run to run are marked by a single True (see ``_changed``)."""
    return any(mask.dim() == 0 < value.dim() for value, pair in zip(result.values, masks) for mask in pair)


def _told(result: Result, masks: list[list[tuple[Tensor, Tensor]]], batch: Batch) -> dict[str, Any]:
    shape, dim = _samples_in(result, masks, batch)
    modules = result.modules
    layouts = [m for m in modules if isinstance(getattr(m, "batch_first", None), bool)]
    module = next(iter(layouts or modules[-1:]), None)
    batch_first = getattr(module, "batch_first", None)
    made = next((site for m in (module, *reversed(modules)) if m is not None and (site := made_at(m))), None)
    return {
        "op": result.name, "op_site": encode(result.site) if result.site else None,
        "op_input": list(shape), "op_output": list(result.values[0].shape), "op_dim": dim,
        "axis": result.scalars["dim"] if isinstance(result.scalars["dim"], int) else None,
        "module_class": type(module).__name__ if module is not None else "", "made_at": encode(made) if made else None,
        "batch_first": batch_first if isinstance(batch_first, bool) else None}


def _samples_in(result: Result, masks: list[list[tuple[Tensor, Tensor]]],
                batch: Batch) -> tuple[tuple[int, ...], int | None]:
    """The first operand that holds samples: its shape, and in which dimension."""
    for shape, (index, place) in zip(result.input_shapes, result.inputs):
        if index < 0 and len(shape) > batch.dim and shape[batch.dim] == batch.size:  # the module's own input
            return shape, batch.dim
        if index >= 0 and bool(masks[index][place][0].any()):
            return shape, apart(*masks[index][place], batch.size)
    return next(iter(result.input_shapes), ()), None
