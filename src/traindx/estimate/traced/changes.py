"""One thing of the program changed while it is traced: the batch, the optimizer's way to step, checkpoints, precision, adapters.

Each installs itself on what the program makes and calls; none asks it for anything.
"""
from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.text import EMPTY, Text
from traindx.estimate.bill import BLOCK
from traindx.probes import patching

LOSSES = ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
          "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "gaussian_nll_loss")
ADAPTER_RANK = 8
NAMES = ("batch", "accumulate", "checkpointing", "bf16", "fused", "foreach", "8-bit", "lora")
STAYED = Text("the batch stayed {batch}", "batch 仍然是 {batch}")


class NotApplicable(Exception):
    """The program has nothing that this change could act on; the message says what is missing."""

    def __init__(self, why: Text) -> None:
        super().__init__(why.en)
        self.why = why


class Change:
    """``on_root`` is called before the first forward of a model in training, ``around`` gives what its calls run in.

    ``acted`` tells whether it found what it acts on; ``missing`` is said where it did not.
    """

    acted = False
    missing: Text = EMPTY

    def install(self, stack: ExitStack) -> None: ...

    def on_optimizer(self, optimizer: Optimizer) -> None: ...

    def on_root(self, root: nn.Module, optimizers: list[Optimizer]) -> None: ...

    def around(self) -> Any:
        return nullcontext()

    def inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return args, kwargs

    def verify(self, batch: int | None) -> None:
        """Raises NotApplicable where it did not come to act."""
        if not self.acted:
            raise NotApplicable(self.missing)


class Batch(Change):
    """Batches of ``before`` samples become ``after``: in the loader where there is one, else where model and loss are called."""

    def __init__(self, before: int, after: int) -> None:
        self.before, self.after = before, after
        self.by_loader = False

    def install(self, stack: ExitStack) -> None:
        patching.replace(stack, _BaseDataLoaderIter, "__next__", self._loaded)
        for name in LOSSES:
            patching.replace(stack, F, name, self._loss)

    def _loaded(self, original: Any) -> Any:
        def __next__(iterator: Any) -> Any:
            batch = original(iterator)
            self.by_loader = True
            return self._resized(batch)
        return patching.dressed(__next__, original)

    def inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return (args, kwargs) if self.by_loader else (self._resized(args), self._resized(kwargs))

    def _resized(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            fits = value.dim() and value.shape[0] == self.before and value.grad_fn is None
            return _rows(value, self.after) if fits else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._resized, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._resized, value))
        if isinstance(value, dict) or hasattr(value, "keys"):
            for key in list(value.keys()):
                value[key] = self._resized(value[key])
        return value

    def _loss(self, original: Any) -> Any:
        def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(target, Tensor) and target.dim() and target.shape[0] * self.after == input.shape[0] * self.before:
                target = _rows(target, input.shape[0])
            return original(input, target, *args, **kwargs)
        return patching.dressed(loss, original)

    def verify(self, batch: int | None) -> None:
        if batch != self.after:
            raise NotApplicable(STAYED.fill(batch=batch))


def _rows(tensor: Tensor, count: int) -> Tensor:
    """The first rows, begun again where there are not enough."""
    return tensor[:count] if count <= tensor.shape[0] else tensor[torch.arange(count) % tensor.shape[0]]


class Accumulate(Change):
    """Only every ``every``-th step steps and resets: gradients live on through the next micro-batch."""

    def __init__(self, every: int = 2) -> None:
        self.every = every
        self.acted = True
        self.calls: Counter[int] = Counter()

    def install(self, stack: ExitStack) -> None:
        def held(original: Any) -> Any:
            def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
                return original(owner, *args, **kwargs) if self._at_start() else None
            return patching.dressed(zero_grad, original)
        patching.replace(stack, nn.Module, "zero_grad", held)

    def _at_start(self) -> bool:
        return all(count % self.every == 0 for count in self.calls.values())

    def on_optimizer(self, optimizer: Optimizer) -> None:
        step, reset, key = optimizer.step, optimizer.zero_grad, id(optimizer)

        def counted(_: Optimizer, *args: Any, **kwargs: Any) -> Any:
            self.calls[key] += 1
            return step(*args, **kwargs) if self.calls[key] % self.every == 0 else None

        def held(_: Optimizer, *args: Any, **kwargs: Any) -> None:
            if self.calls[key] % self.every == 0:
                reset(*args, **kwargs)
        optimizer.step = types.MethodType(counted, optimizer)  # type: ignore[method-assign]
        optimizer.zero_grad = types.MethodType(held, optimizer)  # type: ignore[method-assign]


class Checkpointing(Change):
    """The blocks that repeat keep only their inputs and are computed again in backward."""

    missing = Text("no blocks that repeat were found in the model", "模型里没有找到重复的模块")

    def on_root(self, root: nn.Module, optimizers: list[Optimizer]) -> None:
        if getattr(root, "is_gradient_checkpointing", False):
            self.missing = Text("the model is checkpointed already", "模型已经在做激活重计算")
        elif getattr(root, "supports_gradient_checkpointing", False):
            self.acted = True
            root.gradient_checkpointing_enable()  # type: ignore[operator]
        for block in [] if self.acted else blocks_of(root):
            self.acted = True
            block.forward = _checkpointed(block.forward)  # type: ignore[method-assign]


def _checkpointed(forward: Callable[..., Any]) -> Callable[..., Any]:
    from torch.utils.checkpoint import checkpoint

    def run(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)
    return run


def blocks_of(root: nn.Module) -> list[nn.Module]:
    """Members of lists and sequences that share a class and have members of their own, outermost only."""
    found: list[nn.Module] = []
    inside: set[int] = set()
    for module in root.modules():
        if id(module) in inside or not isinstance(module, (nn.ModuleList, nn.Sequential)):
            continue
        kinds = Counter(type(child) for child in module if any(True for _ in child.children()))
        for child in module:
            if kinds[type(child)] >= 2:
                found.append(child)
                inside.update(id(part) for part in child.modules())
    return found


class Bf16(Change):
    """The model's calls under bfloat16 autocast."""

    missing = Text("autocast is on already, or the weights are not fp32", "已经开着 autocast，或者权重不是 fp32")

    def on_root(self, root: nn.Module, optimizers: list[Optimizer]) -> None:
        self.acted |= not torch.is_autocast_enabled("cpu") and any(p.dtype is torch.float32 for p in root.parameters())

    def around(self) -> Any:
        return torch.autocast("cpu", dtype=torch.bfloat16)


class Stepping(Change):
    """The optimizer steps all parameters in one kernel (``fused``) or as CUDA's default does (``foreach``)."""

    missing = Text("no optimizer that has a fused step, or it is on already", "没有带 fused 更新的优化器，或者已经开着")

    def __init__(self, way: str) -> None:
        self.way = way
        self.acted = way == "foreach"

    def on_optimizer(self, optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            chosen = group.get("fused") or group.get("foreach") is not None
            if self.way not in group or group[self.way] or (self.way == "foreach" and chosen):
                continue
            self.acted = True
            group.update({"foreach": False, "fused": True} if self.way == "fused" else {"foreach": True})


class EightBit(Change):
    """Moments in one byte with a scale for each block, as bitsandbytes keeps them; small tensors stay in fp32."""

    SMALL = 4096
    missing = Text("no optimizer with moments", "没有带矩的优化器")

    def on_optimizer(self, optimizer: Optimizer) -> None:
        moments = 2 if "betas" in optimizer.param_groups[0] else 1 if optimizer.param_groups[0].get("momentum") else 0
        if not moments:
            return
        self.acted = True
        optimizer.step = types.MethodType(Optimizer.profile_hook_step(_eight_bit_step(moments)), optimizer)  # type: ignore[method-assign]


def _eight_bit_step(moments: int) -> Callable[..., Any]:
    def step(optimizer: Optimizer, closure: Any = None) -> Any:
        loss = closure() if closure is not None else None
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and not optimizer.state[p]:
                    optimizer.state[p] = _moments_of(p.detach(), moments)
        return loss
    return step


def _moments_of(p: Tensor, moments: int) -> dict[str, Tensor]:
    if p.numel() < EightBit.SMALL:
        return {f"state{i}": torch.zeros_like(p, dtype=torch.float32) for i in range(moments)}
    scales = -(-p.numel() // BLOCK)
    return {**{f"state{i}": torch.zeros_like(p, dtype=torch.uint8) for i in range(moments)},
            **{f"absmax{i}": p.new_zeros(scales, dtype=torch.float32) for i in range(moments)}}


class Lora(Change):
    """The model is frozen; every linear layer gets an adapter, and only these are trained."""

    missing = Text("fewer than two linear layers", "线性层不到两个")

    def on_root(self, root: nn.Module, optimizers: list[Optimizer]) -> None:
        layers = [m for m in root.modules() if isinstance(m, nn.Linear) or type(m).__name__ == "Conv1D"]
        if len(layers) < 2 or self.acted:
            return
        self.acted = True
        for p in root.parameters():
            p.requires_grad_(False)
        adapters = [p for layer in layers for p in _adapt(layer)]
        for optimizer in optimizers[:1]:
            optimizer.param_groups[0]["params"] = adapters
        for group in [g for optimizer in optimizers for g in optimizer.param_groups]:
            group["params"] = [p for p in group["params"] if p.requires_grad]


def _adapt(layer: nn.Module) -> Iterator[nn.Parameter]:
    weight: Tensor = layer.weight  # type: ignore[assignment]
    rows, columns = weight.shape if isinstance(layer, nn.Linear) else weight.shape[::-1]
    down = nn.Parameter(weight.new_zeros(columns, ADAPTER_RANK))
    up = nn.Parameter(weight.new_zeros(ADAPTER_RANK, rows))
    forward = layer.forward
    layer.forward = lambda x: forward(x) + (x @ down) @ up  # type: ignore[method-assign]
    yield from (down, up)


def change_named(name: str, settings: dict[str, Any]) -> Change:
    """``settings`` of a batch: ``before`` and ``after``."""
    made: dict[str, Callable[[], Change]] = {
        "batch": lambda: Batch(settings["before"], settings["after"]), "accumulate": lambda: Accumulate(settings.get("every", 2)),
        "checkpointing": Checkpointing, "bf16": Bf16, "fused": lambda: Stepping("fused"), "foreach": lambda: Stepping("foreach"),
        "8-bit": EightBit, "lora": Lora}
    return made[name]()


class Changes:
    """Puts changes on the program: on optimizers as they are made, on models at their first forward in training."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes
        self.optimizers: list[Optimizer] = []
        self._roots: set[int] = set()
        self._depth = 0

    def install(self, stack: ExitStack) -> None:
        for change in self.changes:
            change.install(stack)
        patching.replace(stack, Optimizer, "__init__", self._made)
        patching.replace(stack, nn.Module, "__call__", self._called)

    def _made(self, original: Any) -> Any:
        def __init__(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self.optimizers.append(optimizer)
            for change in self.changes:
                change.on_optimizer(optimizer)
        return patching.dressed(__init__, original)

    def _called(self, original: Any) -> Any:
        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            inside = self._depth or torch._C._current_graph_task_id() != -1  # in a call of the program's, or computed again in backward
            if inside or not torch.is_grad_enabled() or not any(True for _ in module.parameters()):
                return original(module, *args, **kwargs)
            if id(module) not in self._roots:
                self._roots.add(id(module))
                for change in self.changes:
                    change.on_root(module, self.optimizers)
            self._depth += 1
            try:
                with ExitStack() as stack:
                    for change in self.changes:
                        args, kwargs = change.inputs(args, kwargs)
                        stack.enter_context(change.around())
                    return original(module, *args, **kwargs)
            finally:
                self._depth -= 1
        return patching.dressed(__call__, original)

    def verify(self, batch: int | None) -> None:
        for change in self.changes:
            change.verify(batch)

