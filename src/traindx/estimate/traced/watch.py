"""Counts the storages that a program makes, with phase, line, module and owner, real ones and those without data alike."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from traindx.core.observed import Site
from traindx.estimate.traced.faking import Faker
from traindx.estimate.traced.ledger import AFTER, DATA, Ledger
from traindx.estimate.traced.workspaces import workspace_of
from traindx.probes import patching, sites
from traindx.probes.tensors import tensors_in

STEPS = 2  # the optimizer's state appears in the first
MOST_STEPS = 12  # of all optimizers together, where one of them is never stepped
MOST_BACKWARDS = 12  # of a program that has no optimizer
_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_node: Callable[[], Any] = torch._C._current_autograd_node


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Entered before the script. ``done`` is called after the last step that is wanted; it may not return."""

    def __init__(self, faker: Faker | None, done: Callable[[], None], steps: int = STEPS, workspaces: bool = True) -> None:
        super().__init__()
        self.workspaces = workspaces
        self.ledger = Ledger()
        self.faker = faker
        self.done = done
        self.steps_wanted = steps
        self.optimizers: list[weakref.ref[Any]] = []
        self.stepped: dict[int, int] = {}
        self.batch: int | None = None
        self.shapes: list[list[int]] = []
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._parameters: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._roots: weakref.WeakKeyDictionary[nn.Module, dict[int, str]] = weakref.WeakKeyDictionary()
        self._modules: list[str] = []
        self._names: dict[int, str] = {}
        self._nodes: dict[int, tuple[Site | None, str]] = {}
        self._last = _sequence()
        self.backwards = 0
        self._engine = 0
        self._in_step = 0

    @property
    def steps(self) -> int:
        return sum(self.stepped.values())

    def install(self, stack: ExitStack) -> None:
        """Every patch, until the stack closes."""
        patching.replace(stack, torch.autograd, "_engine_run_backward", self._engine_watched)
        patching.replace(stack, nn.Module, "__call__", self._call_watched)
        patching.replace(stack, torch.optim.Optimizer, "__init__", self._made_watched)
        stack.callback(register_optimizer_step_pre_hook(self._before_step).remove)
        stack.callback(register_optimizer_step_post_hook(self._after_step).remove)
        stack.enter_context(self)

    # -- storages -----------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs) if self.faker is None else self.faker.run(func, args, kwargs)
        self._follow_graph()
        for tensor in _flat(args):
            self._record(tensor, "", DATA)
        name = func.overloadpacket.__name__
        for tensor in _flat(out if isinstance(out, (tuple, list)) else (out,)):
            self._record(tensor, name)
        if self.workspaces and (size := workspace_of(name, args)):
            self._pass(size, name)
        return out

    def _pass(self, size: int, op: str) -> None:
        """Memory that is there only while an operation runs."""
        site, module = self._place()
        index = self.ledger.birth(size, self.ledger.windows[-1][1], op, site, module)
        self.ledger.records[index].category = "temporaries"
        self.ledger.death(index)

    def _follow_graph(self) -> None:
        """A new node of autograd means that a forward goes on; whoever made it is where its backward belongs."""
        now = _sequence()
        if now == self._last:
            return
        if not self._engine and self.ledger.windows[-1][1] != "forward":
            self.ledger.enter("forward")
        if not self._engine:
            place = (sites.here(3), self._modules[-1] if self._modules else "")
            for number in range(self._last, now):
                self._nodes[number] = place
        self._last = now

    def _record(self, tensor: Tensor, op: str, phase: str | None = None) -> int | None:
        """The record of the tensor's storage, made where it is new; None for tensors without one."""
        storage = _storage(tensor)
        if storage is None:
            return None
        key, size = id(storage), storage.nbytes()
        entry = self._known.get(key)
        if entry is not None and entry[0]() is storage:
            return self._seen(entry[1], size)
        return self._born(storage, key, op, phase)

    def _seen(self, index: int, size: int) -> int:
        if self.ledger.records[index].size != size:
            self.ledger.resize(index, size)
        return index

    def _born(self, storage: Any, key: int, op: str, phase: str | None) -> int:
        site, module = self._place()
        current = self.ledger.windows[-1][1]
        index = self.ledger.birth(storage.nbytes(), phase or current, op, site, module)
        if self._engine and self._modules:  # a checkpoint that is computed again
            self.ledger.records[index].category = "activations"

        def dead(_: Any) -> None:
            known = self._known.get(key)
            if known is not None and known[1] == index:
                del self._known[key]
            self.ledger.death(index)
        self._known[key] = (weakref.ref(storage, dead), index)
        return index

    def _place(self) -> tuple[Site | None, str]:
        """Of a backward operation: the forward line that it belongs to."""
        if self._engine and not self._modules and (node := _node()) is not None:
            place = self._nodes.get(node._sequence_nr())
            if place is not None:
                return place
        return sites.here(3), self._modules[-1] if self._modules else ""

    def _mark(self, tensor: Any, category: str, module: str = "") -> None:
        if isinstance(tensor, Tensor) and (index := self._record(tensor, "", DATA)) is not None:
            record = self.ledger.records[index]
            record.category = record.category or category
            record.module = module or record.module

    # -- modules ------------------------------------------------------------------------------------------------------

    def _call_watched(self, original: Any) -> Any:
        watch = self

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            names = watch._names if watch._modules else watch._root(module, args, kwargs)
            watch._names = names
            watch._modules.append(names.get(id(module), type(module).__name__))
            try:
                return original(module, *args, **kwargs)
            finally:
                watch._modules.pop()
        return patching.dressed(__call__, original)

    def _root(self, module: nn.Module, args: Any, kwargs: Any) -> dict[int, str]:
        """Notes what a call by the program itself was given; the names of its modules."""
        names = self._roots.get(module)
        if names is None:
            names = {id(child): name or type(module).__name__ for name, child in module.named_modules()}
            self._roots[module] = names
        if self._engine:
            return names
        owned = False
        for name, tensor in _owned(module):
            owned = True
            self._parameters[id(tensor)] = (weakref.ref(tensor), name or type(module).__name__)
            self._mark(tensor, "parameters", name or type(module).__name__)
        if owned:
            self._given(tuple(tensors_in((args, kwargs))))
        return names

    def _given(self, tensors: tuple[Tensor, ...]) -> None:
        self.ledger.enter("forward")
        for tensor in tensors:
            if tensor.grad_fn is None:
                self._mark(tensor, "inputs")
        if torch.is_grad_enabled() and tensors and tensors[0].dim():
            self.batch = self.batch or int(tensors[0].shape[0])
            self.shapes = self.shapes or [list(map(int, tensor.shape)) for tensor in tensors]

    def parameter_count(self) -> int:
        """Of all models seen so far, in elements."""
        return sum(tensor.numel() for ref, _ in self._parameters.values() if isinstance(tensor := ref(), nn.Parameter))

    # -- backward and step --------------------------------------------------------------------------------------------

    def _engine_watched(self, original: Any) -> Any:
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if not self._engine:
                self.ledger.enter("backward")
            outside, self._modules = self._modules, []
            self._engine += 1
            try:
                return original(*args, **kwargs)
            finally:
                self._engine -= 1
                self._modules = outside
                if not self._engine:
                    self._after_backward()
        return run_backward

    def _after_backward(self) -> None:
        self._mark_gradients()
        self.ledger.enter("step" if self._in_step else AFTER)
        self.backwards += 1
        if self.backwards >= MOST_BACKWARDS and not self.stepped and not any(ref() is not None for ref in self.optimizers):
            self.done()

    def _mark_gradients(self) -> None:
        for ref, module in self._parameters.values():
            tensor = ref()
            if tensor is not None and tensor.is_leaf and tensor.grad is not None:
                self._mark(tensor.grad, "gradients", module)

    def _made_watched(self, original: Any) -> Any:
        watch = self

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            watch.optimizers.append(weakref.ref(optimizer))
            watch._owns(optimizer)
        return patching.dressed(__init__, original)

    def _owns(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                self._parameters.setdefault(id(tensor), (weakref.ref(tensor), ""))
                self._mark(tensor, "parameters")

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._in_step:
            self._owns(optimizer)
            self._mark_gradients()
            self.ledger.enter("step")
        self._in_step += 1

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._in_step -= 1
        if self._in_step:
            return
        for tensor, state in optimizer.state.items():
            module = self._parameters[id(tensor)][1] if id(tensor) in self._parameters else ""
            for value in tensors_in(state, 64):
                self._mark(value, "optimizer", module)
        self.ledger.enter(DATA)
        self.stepped[id(optimizer)] = self.stepped.get(id(optimizer), 0) + 1
        if self._enough():
            self.done()

    def _enough(self) -> bool:
        made = [ref for ref in self.optimizers if ref() is not None]
        every = len(self.stepped) >= len(made) and min(self.stepped.values()) >= self.steps_wanted
        return every or self.steps >= max(MOST_STEPS, self.steps_wanted * 2)


def _storage(tensor: Tensor) -> Any:
    """None for tensors without one: sparse, nested, wrapped."""
    try:
        return tensor.untyped_storage()
    except Exception:
        return None


def _flat(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from (item for item in value if isinstance(item, Tensor))


def _owned(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers with the path of the module that has them."""
    for path, child in module.named_modules():
        for tensor in (*child._parameters.values(), *child._buffers.values()):
            if tensor is not None:
                yield path, tensor
