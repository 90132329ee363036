"""Who takes part in the loss and who is moved: a walk over the autograd graph, samples of weights around updates.

The walk goes from the backward's root to its leaves, on detailed steps and for the first backwards of every place.
Samples are of a few tensors and a few hundred elements each, so that the cost does not grow with the model.
"""
from __future__ import annotations

import inspect
import re
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from traindx.core.observed import Site, changed
from traindx.core.observed.learning import Drift, FlagMissed, Leaf, Leaves, RateSeen, UpdateSeen, Written
from traindx.probes import patching, sites, source
from traindx.probes.modules import Forwards, made_at
from traindx.probes.session import BackwardRun, ForwardRun, Probe, Session, StepRun
from traindx.probes.tensors import number_of, plain, readable, sample, shape_of, tensors_in
from traindx.probes.writes import Writes

NODES_LIMIT = 20_000
WALKS_PER_SITE = 4
THAWS = 8  # steps at which something was unfrozen
LEAVES_LIMIT = 4000
TRACKED = 12  # tensors whose updates are measured, for each place of backward
PLACES = 8
SAMPLE = 256
NEAR_ZERO = 1e-3  # of the peak: the rate of a planned decay's very end
_MISSPELT = re.compile(r"^(?!requires_grad$)_?requires?[_ ]?g[ra]{2}ds?$", re.IGNORECASE)


def install(session: Session) -> None:
    session.add(Learning)
    session.add(Rates)
    patching.replace(session.stack, nn.Module, "load_state_dict", lambda original: _observed_load(original, session))
    patching.replace(session.stack, nn.Parameter, "__deepcopy__", lambda original: _observed_copy(original, session))


def _observed_load(original: Any, session: Session) -> Any:
    def load_state_dict(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if session.watching and Learning.instance is not None:
            try:
                Learning.instance.loaded(self, set(getattr(result, "missing_keys", ())))
            except Exception:
                pass  # only the mark is lost
        return result
    return patching.dressed(load_state_dict, original)


def _observed_copy(original: Any, session: Session) -> Any:
    def __deepcopy__(self: nn.Parameter, memo: dict[int, Any]) -> Any:
        copy = original(self, memo)
        if session.watching and Learning.instance is not None:
            try:
                Learning.instance.copied(self, copy)
            except Exception:
                pass  # only the mark is lost
        return copy
    return patching.dressed(__deepcopy__, original)


def leaves_of(roots: Iterable[Any], limit: int = NODES_LIMIT) -> list[Tensor]:
    """The leaf tensors that a backward from these roots would reach; at most ``limit`` nodes are looked at."""
    stack = [root.grad_fn for root in roots if isinstance(root, Tensor) and root.grad_fn is not None]
    seen: set[Any] = set(stack)
    found: list[Tensor] = []
    while stack and len(seen) < limit:
        node = stack.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.append(variable)
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
    return found


@dataclass(eq=False)
class _State:
    """What is known of one leaf; the numbers of :class:`Leaf`, while they grow."""

    ref: weakref.ref[Tensor]
    leaf: Leaf
    values: list[float] | None = None
    version: int | None = None  # None until first looked at

    def note(self, **facts: Any) -> None:
        self.leaf = changed(self.leaf, **facts)

    def thaw(self, step: int) -> None:
        """Frozen, then trainable: what moves is counted anew."""
        self.note(thawed=step, thawed_compared=0, thawed_changed=0, thawed_graded=0, requires_grad=True)
        self.version = None  # it may have moved while nobody looked


@dataclass
class _Before:
    """Samples of some leaves and their gradients right after a backward, until the next one."""

    site: Site | None
    step: int
    tensors: list[tuple[int, weakref.ref[Tensor], Tensor, Tensor]] = field(default_factory=list)


class Learning(Probe):
    """Leaves of the loss, forwards of their modules, changes of their values, direction and size of updates."""

    areas = ("optim", "loss")
    instance: Learning | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._states: dict[int, _State] = {}
        self._walks = 0
        self._per_site: dict[Site | None, int] = {}
        self._tracked: dict[Site | None, list[weakref.ref[Tensor]]] = {}
        self._before: _Before | None = None
        self._first: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}
        self._first_step = 0
        self._come: Drift | None = None
        self._input_size = 0.0
        self._roots: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._pretrained: set[int] = set()
        self._thaws: set[int] = set()
        self._looked = False
        Learning.instance = self

    # -- who runs ---------------------------------------------------------------------------------------------------

    def before_forward(self, run: ForwardRun) -> None:
        if not self.session.detailed:
            return
        for tensor in tensors_in((run.args, run.kwargs), 8):
            if tensor.requires_grad and tensor.is_leaf and plain(tensor):
                self._state(tensor).note(is_input=True)
            if self.session.step <= 3 and readable(tensor) and tensor.is_floating_point() and tensor.numel():
                self._input_size = max(self._input_size, float(sample(tensor).abs().max()))

    def after_forward(self, run: ForwardRun) -> None:
        if not self.session.detailed or run.failed:
            return
        self._roots.add(run.module)
        if getattr(run.module, "name_or_path", ""):  # a Hugging Face model that came from a checkpoint
            self.loaded(run.module, set())
        self._ran(run.module, run.module, run.grad)

    def after_module(self, module: nn.Module, path: str, args: tuple[Any, ...], output: Any) -> None:
        modules = self.session.thread.modules
        if modules and module._parameters:
            self._ran(module, modules[0], torch.is_grad_enabled())

    def _ran(self, module: nn.Module, root: nn.Module, grad: bool) -> None:
        info = Forwards.instance.info(root) if Forwards.instance else None
        registered = info is None or id(module) in info.paths
        for name, parameter in module._parameters.items():
            if parameter is None or not plain(parameter) or not parameter.is_leaf:
                continue
            state = self._state(parameter)
            self._follow_flag(state, parameter)
            leaf = state.leaf
            if not leaf.module:
                leaf = changed(leaf, name=leaf.name or name, module=type(module).__name__, owner=type(root).__name__,
                               made_at=leaf.made_at or made_at(module))
            state.leaf = changed(
                leaf, ran=leaf.ran + grad, ran_without_grad=leaf.ran_without_grad + (not grad),
                ran_in_train=leaf.ran_in_train + module.training, last_ran=self.session.step,
                registered=leaf.registered and registered, requires_grad=parameter.requires_grad,
                ever_trainable=leaf.ever_trainable or parameter.requires_grad)
            if leaf.took_part == 0:
                self._compare(state, parameter)

    def _state(self, tensor: Tensor) -> _State:
        key = self.session.ids.of(tensor)
        state = self._states.get(key)
        if state is None:
            trainable = tensor.requires_grad
            leaf = Leaf(id=key, shape=shape_of(tensor), requires_grad=trainable, ever_trainable=trainable,
                        pretrained=key in self._pretrained, is_parameter=isinstance(tensor, nn.Parameter))
            state = _State(weakref.ref(tensor), leaf)
            if len(self._states) < LEAVES_LIMIT:
                self._states[key] = state
        return state

    def _follow_flag(self, state: _State, tensor: Tensor) -> None:
        """After the first few changes from frozen to trainable, the next backwards are looked at; flags that flip each step are a habit."""
        if tensor.requires_grad and not state.leaf.requires_grad:
            state.thaw(self.session.step)
            if self.session.step not in self._thaws and len(self._thaws) < THAWS:
                self._thaws.add(self.session.step)
                self._per_site.clear()

    def loaded(self, module: nn.Module, missing: set[str]) -> None:
        """A state dict came in; what was trained before stays as it is."""
        for name, parameter in module.named_parameters():
            if name not in missing:
                self._mark_pretrained(parameter)

    def copied(self, source: nn.Parameter, copy: nn.Parameter) -> None:
        key = self.session.ids.of(source)
        state = self._states.get(key)
        if key in self._pretrained or (state is not None and state.leaf.graded > 0):
            self._mark_pretrained(copy)

    def _mark_pretrained(self, parameter: Tensor) -> None:
        key = self.session.ids.of(parameter)
        state = self._states.get(key)
        if state is None or state.leaf.took_part == 0:
            self._pretrained.add(key)
            if state is not None:
                state.note(pretrained=True)

    # -- who takes part ---------------------------------------------------------------------------------------------

    def before_backward(self, run: BackwardRun) -> None:
        self._looked = False
        if not run.accumulate:
            if self.session.detailed:
                for tensor in run.inputs:
                    if isinstance(tensor, Tensor) and tensor.is_leaf and plain(tensor):
                        self._state(tensor).note(is_input=True)
            return
        self._measure()
        count = self._per_site[run.site] = self._per_site.get(run.site, 0) + 1
        if self.session.detailed or count <= WALKS_PER_SITE:
            self._looked = True
            self._walk(run)

    def _walk(self, run: BackwardRun) -> None:
        step = self.session.step
        self._walks += 1
        leaves = [leaf for leaf in leaves_of(run.roots) if plain(leaf)]
        for tensor in leaves:
            state = self._state(tensor)
            self._follow_flag(state, tensor)
            leaf = state.leaf
            state.leaf = changed(leaf, took_part=leaf.took_part + 1, first_step=leaf.first_step or step, last_step=step,
                                 requires_grad=True, ever_trainable=True)
            self._compare(state, tensor)
        if run.site not in self._tracked and len(self._tracked) < PLACES and leaves:
            self._tracked[run.site] = [weakref.ref(leaf) for leaf in _chosen(leaves)]

    def _compare(self, state: _State, tensor: Tensor) -> None:
        """Whether the values differ from the last look; on a device only the version can tell without waiting."""
        leaf = state.leaf
        values = sample(tensor, 32).tolist() if readable(tensor) and not tensor.is_complex() else None
        version = tensor._version
        if state.version is not None:
            moved = version != state.version or values != state.values
            thawed = leaf.thawed > 0
            state.leaf = changed(leaf, compared=leaf.compared + 1, changed=leaf.changed + moved,
                                 thawed_compared=leaf.thawed_compared + thawed, thawed_changed=leaf.thawed_changed + (thawed and moved))
        state.values, state.version = values, version

    def after_backward(self, run: BackwardRun) -> None:
        if not run.accumulate or not self._looked:
            return
        for state in self._states.values():
            tensor = state.ref()
            if tensor is not None and tensor.is_leaf and tensor.requires_grad:
                leaf = state.leaf
                graded = _has_gradient(tensor)
                state.leaf = changed(leaf, walks=leaf.walks + 1, graded=leaf.graded + graded,
                                     thawed_graded=leaf.thawed_graded + (leaf.thawed > 0 and graded))
        if self._before is None and self.session.detailed:
            self._before = self._sampled(run.site)

    # -- which way, how far -----------------------------------------------------------------------------------------

    def _sampled(self, site: Site | None) -> _Before | None:
        before = _Before(site, self.session.step)
        for ref in self._tracked.get(site, ()):
            tensor = ref()
            if tensor is None or not readable(tensor) or tensor.grad is None or not readable(tensor.grad):
                continue
            key = self.session.ids.of(tensor)
            values, gradient = _copy(tensor), _copy(tensor.grad)
            before.tensors.append((key, ref, values, gradient))
            if key not in self._first and len(self._first) < TRACKED * PLACES:
                self._first[key] = (ref, values)
                self._first_step = self._first_step or self.session.step
        return before if before.tensors else None

    def _measure(self) -> None:
        """Compares with the samples after the last backward; newer ones are taken where nothing moved."""
        before, self._before = self._before, None
        if before is None:
            return
        moved = [(key, now - then, then, gradient) for key, now, then, gradient in self._moved(before)]
        if moved:
            self.session.emit(_update(moved, before))
            self._come = self._drift()

    def _moved(self, before: _Before) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        for key, ref, then, gradient in before.tensors:
            tensor = ref()
            if tensor is not None and readable(tensor):
                now = _copy(tensor)
                if now.shape == then.shape and not torch.equal(now, then):
                    yield key, now, then, gradient

    def _drift(self) -> Drift | None:
        found = [(ref(), then) for ref, then in self._first.values()]
        alive = [(tensor, then) for tensor, then in found if tensor is not None and readable(tensor)]
        matrices = [pair for pair in alive if pair[0].dim() > 1] or alive
        pairs = [(now, then) for tensor, then in matrices if (now := _copy(tensor)).shape == then.shape]
        if not pairs:
            return None
        now, then = torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs])
        size = float(then.norm()) or 1e-12
        return Drift(step=self.session.step, key="drift", drift=float((now - then).norm()) / size,
                     scale=float(now.norm()) / size, tensors=len(pairs), since=self._first_step)

    def rests(self) -> bool:
        return self._before is None and (not self._thaws or self.session.step - max(self._thaws) > WALKS_PER_SITE)

    # -- saying -----------------------------------------------------------------------------------------------------

    def on_tick(self, step: int) -> None:
        if step >= 4 and step & (step - 1) == 0:
            self._say()

    def at_end(self) -> None:
        self._measure()
        self._say()

    def _say(self) -> None:
        if not self._states:
            return
        self._find_owners()
        if self._come is not None:
            self.session.emit(self._come)
        leaves = (state.leaf for state in self._states.values())
        lasting = tuple(leaf for leaf in leaves
                        if leaf.took_part + leaf.graded > 1 or leaf.ran + leaf.ran_without_grad > 0)
        self.session.emit(Leaves(step=self.session.step, key="leaves", leaves=lasting, walks=self._walks,
                                 input_size=self._input_size))
        self._say_missed_flags()

    def _find_owners(self) -> None:
        """Tensors outside every module may hang on one as a plain attribute, or in a list or dict there."""
        loose = {id(tensor): state for state in self._states.values()
                 if not state.leaf.name and state.leaf.took_part > 1 and (tensor := state.ref()) is not None}
        if not loose:
            return
        for root in list(self._roots):
            for module in root.modules():
                for name, value in vars(module).items():
                    if name.startswith("_"):
                        continue
                    for tensor in tensors_in(value, 64):
                        if (state := loose.get(id(tensor))) is not None:
                            state.note(name=name, module=type(module).__name__, owner=type(root).__name__,
                                       registered=False, made_at=source.assigned_at(type(module), name) or made_at(module))

    def _say_missed_flags(self) -> None:
        for root in list(self._roots):
            for path, module in root.named_modules():
                for name, value in vars(module).items():
                    if isinstance(value, bool) and (name == "requires_grad" or _MISSPELT.match(name)):
                        self._missed_flag(path, module, name, value, list(module.parameters()))
                for inner, parameter in module._parameters.items():
                    for name, value in getattr(parameter, "__dict__", {}).items():
                        if isinstance(value, bool) and _MISSPELT.match(name):
                            self._missed_flag(f"{path}.{inner}".lstrip("."), module, name, value, [parameter])

    def _missed_flag(self, path: str, module: nn.Module, name: str, wanted: bool, parameters: list[Any]) -> None:
        differing = sum(p.numel() for p in parameters if p.requires_grad != wanted)
        self.session.emit(FlagMissed(
            step=self.session.step, key=f"flag-{self.session.ids.of(module)}-{path}-{name}", attribute=name,
            wanted=wanted, class_name=type(module).__name__, path=path, elements=differing,
            total=sum(p.numel() for p in parameters), site=source.first_line(rf"\.{name}\s*=(?!=)")))


def _has_gradient(tensor: Tensor) -> bool:
    gradient = tensor.grad
    if gradient is None:
        return False
    return not readable(gradient) or bool(sample(gradient, SAMPLE).any()) or bool(gradient.any())


def _copy(tensor: Tensor) -> Tensor:
    return sample(tensor, SAMPLE).to(torch.float32, copy=True)


def _chosen(leaves: list[Tensor]) -> list[Tensor]:
    """Matrices before vectors, spread evenly from the last layer to the first."""
    matrices = [leaf for leaf in leaves if leaf.dim() > 1] or leaves
    return matrices[::max(1, -(-len(matrices) // TRACKED))][:TRACKED]


def _update(moved: list[tuple[int, Tensor, Tensor, Tensor]], before: _Before) -> UpdateSeen:
    change, then = torch.cat([d for _, d, _, _ in moved]), torch.cat([p for _, _, p, _ in moved])
    gradient = torch.cat([g for *_, g in moved])
    ratios = sorted(float(d.norm()) / float(p.norm()) for _, d, p, _ in moved if float(p.norm()) > 0)
    return UpdateSeen(
        step=before.step, site=before.site, cosine=_cosine(change, gradient), toward_zero=-_cosine(change, then),
        ratio=ratios[len(ratios) // 2] if ratios else 0.0, gradient=float(gradient.pow(2).mean().sqrt()),
        weight=float(then.pow(2).mean().sqrt()), moved=tuple(key for key, *_ in moved))


def _cosine(a: Tensor, b: Tensor) -> float:
    size = float(a.double().norm() * b.double().norm())
    return float(a.double() @ b.double()) / size if size > 0 else 0.0


class Rates(Probe):
    """The learning rate of every optimizer over its own steps; the writing lines of optimizers of the user's own."""

    areas = ("optim",)
    always = ("before_step",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seen: dict[int, RateSeen] = {}
        self._same: dict[int, int] = {}
        self._latest: dict[int, int] = {}  # step of an optimizer
        self._writes: Writes | None = None

    def before_step(self, run: StepRun) -> None:
        if self.session.step <= 2 and not self.session.compiled and _users_own(type(run.optimizer)):
            parameters = (p for group in run.optimizer.param_groups for p in group["params"])
            self._writes = Writes(self.session, parameters, self._note_write)
            self._writes.on()
        rate = run.rate
        if rate is None:
            return
        seen = self._seen.get(run.id)
        self._latest[run.id] = self.session.step
        if seen is not None and rate == seen.last and rate > 0 and not seen.low_steps and seen.steps > 1:
            self._same[run.id] = self._same.get(run.id, 0) + 1  # by far the most steps: counted when something changes
            return
        self._note(run, rate)

    def _note_write(self, site: Site | None, name: str) -> None:
        if site is not None:
            self.session.emit(Written(step=self.session.step, key=f"written-{site.short}", site=site, op=name))

    def after_step(self, run: StepRun) -> None:
        if self._writes is not None:
            self._writes.off()
            self._writes = None

    def _settle(self, id: int) -> None:
        """Counts the latest steps, which were taken at the rate of the one before."""
        same = self._same.pop(id, 0)
        if same:
            seen = self._seen[id]
            self._seen[id] = changed(seen, step=self._latest[id], steps=seen.steps + same, last_step=self._latest[id])

    def _note(self, run: StepRun, rate: float) -> None:
        self._settle(run.id)
        seen, step = self._seen.get(run.id), self.session.step
        if seen is None:
            groups = run.optimizer.param_groups
            base = max((number_of(group.get("initial_lr", group.get("lr"))) or 0.0 for group in groups), default=rate)
            self._seen[run.id] = RateSeen(
                step=step, key=f"rate-{run.id}", optimizer=run.id, steps=1, first_step=step, last_step=step, base=base,
                first=rate, peak=rate, last=rate, lowest=rate, low_steps=0, still=int(rate == 0), falls=0, rises=0)
            return
        peak = max(seen.peak, rate)
        low = rate <= NEAR_ZERO * (min(peak, seen.base) if seen.base > 0 else peak)
        self._seen[run.id] = changed(
            seen, step=step, steps=seen.steps + 1, last_step=step, peak=peak, last=rate, lowest=min(seen.lowest, rate),
            low_steps=seen.low_steps + 1 if low else 0, low_since=(seen.low_since or step) if low else 0,
            still=seen.still + 1 if rate == 0 and seen.still == seen.steps else seen.still,
            falls=seen.falls + (rate < seen.last), rises=seen.rises + (rate > seen.last))

    def on_tick(self, step: int) -> None:
        if step >= 4 and step & (step - 1) == 0:
            self.at_end()

    def at_end(self) -> None:
        for id in list(self._seen):
            self._settle(id)
        for seen in self._seen.values():
            by_hand = source.first_line(r"\[.lr.\]\s*[-*/+]?=(?!=)") if seen.falls + seen.rises else None
            self.session.emit(changed(seen, set_by_hand=by_hand))


def _users_own(kind: type[Optimizer]) -> bool:
    code = getattr(inspect.unwrap(kind.step), "__code__", None)  # under the profiler's wrapper and no_grad's
    return code is not None and sites.is_user(code.co_filename)
