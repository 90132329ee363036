"""NaN and infinity: noticed cheaply each step in the backward root and the gradients, named once by reading the graph.

Two gradients, the deepest layer's among them, are looked at each step, all of them while the budget lasts (an L2 norm
carries NaN and infinity).
"""
from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site, changed
from traindx.core.observed.finite import FiniteSummary, Nonfinite
from traindx.core.observed.program import Event
from traindx.probes import graph, patching
from traindx.probes.ops import Traces
from traindx.probes.session import BackwardRun, Budget, ForwardRun, LossRun, Probe, Session, StepRun
from traindx.probes.tensors import item, readable, sample, tensors_in, total

NAMED = 4  # faults described in full; later ones are only counted
TABLES = 3  # traced steps whose lines are remembered
SHOWN_NAMES = 5


def install(session: Session) -> None:
    hooks = torch.autograd.graph.saved_tensors_hooks
    patching.replace(session.stack, hooks, "__enter__", _observed_enter)
    session.add(Finite)


def _observed_enter(original: Any) -> Any:
    def __enter__(self: Any) -> Any:
        Finite.unpacking = True  # offloading, checkpointing: to read a saved tensor may run the user's code
        return original(self)
    return patching.dressed(__enter__, original)


class Finite(Probe):
    """First non-finite root, gradient and weight."""

    areas = ("numeric",)
    unpacking = False
    always = ("before_backward", "after_backward")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        Finite.unpacking = False
        self.budget = Budget(session, share=0.02)
        self.summary = FiniteSummary(key="finite")
        self._said = self.summary
        self._named = 0
        self._optimizers: list[weakref.ref[Any]] = []
        self._leaves: list[weakref.ref[Tensor]] = []
        self._models: dict[int, weakref.ref[Any]] = {}
        self._inputs: list[weakref.ref[Tensor]] = []
        self._inputs_of = 0  # step
        self._loss_site: Site | None = None
        self._lines: list[graph.Lines] = []
        self._plans: dict[int, graph.Plan | None] = {}
        self._held: list[graph.Held] = []
        self._shape: dict[int, str] = {}  # of the graph that is going backward
        self._bad_root = self._bad_gradients = False
        self._last_bad = False  # the root of the latest backward
        self._scaled = False
        self._root_node: Any = None
        self._step_site: Site | None = None
        self._two: list[weakref.ref[Tensor]] = []  # whose gradients stand for all where looking at all costs too much
        self._loss_fault: Nonfinite | None = None  # of the step that is being computed
        self._steps = 0  # that the summary does not yet count

    # -- what may be needed --------------------------------------------------------------------------------------------

    def on_optimizer(self, optimizer: torch.optim.Optimizer, id: int, site: Site | None) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def before_forward(self, run: ForwardRun) -> None:
        if self._inputs_of != self.session.step:
            self._inputs_of, self._inputs = self.session.step, []
        if len(self._inputs) < 32:
            alone = len(run.args) == 1 and not run.kwargs and type(run.args[0]) is Tensor
            self._inputs += [weakref.ref(t) for t in (run.args if alone else tensors_in((run.args, run.kwargs), 4))]
        if run.model not in self._models and len(self._models) < 16:
            self._models[run.model] = weakref.ref(run.module)

    def on_loss(self, run: LossRun) -> None:
        self._loss_site = run.site
        if run.grad and self._named < NAMED and (value := run.value) is not None and not math.isfinite(value):
            self._loss_fault = self._of_loss(run, value)
        if len(self._inputs) < 32 and isinstance(run.target, Tensor):
            self._inputs.append(weakref.ref(run.target))

    def _of_loss(self, run: LossRun, value: float) -> Nonfinite | None:
        """Named at the loss already: the program may stop of its own accord before any backward."""
        node = run.output.grad_fn
        if node is None or Finite.unpacking or self._bad_weights():
            return None
        tracer = Traces.tracer
        if tracer.armed and tracer.ops:
            self._lines = [graph.Lines(tuple(tracer.ops)), *self._lines][:TABLES]
        fault = Nonfinite(step=self.session.step, phase="forward", value=value, loss_site=run.site,
                          step_site=self._step_site)
        return self._with(fault, graph.maker(node), {n._sequence_nr(): type(n).__name__ for n in graph.below(node)})

    def _parameters(self) -> Iterator[Tensor]:
        """What the optimizers hold; without one, the leaves that the last walk met."""
        seen = False
        for ref in self._optimizers:
            optimizer = ref()
            for group in optimizer.param_groups if optimizer is not None else ():
                for parameter in group["params"]:
                    seen = True
                    yield parameter
        if not seen:
            yield from (leaf for leaf_ref in self._leaves if (leaf := leaf_ref()) is not None)

    # -- backward ------------------------------------------------------------------------------------------------------

    def before_backward(self, run: BackwardRun) -> None:
        root = run.roots[0] if run.roots else None
        node = getattr(root, "grad_fn", None)
        if node is None:
            return
        tracer = Traces.tracer
        if tracer.armed and tracer.ops:
            self._lines = [graph.Lines(tuple(tracer.ops)), *self._lines][:TABLES]
        self._last_bad = run.value is not None and not math.isfinite(run.value)
        if self._last_bad:
            self._bad_root = True
            if self._named < NAMED:
                self._name_forward(run, node)
        elif (run.accumulate or run.by_hand) and not Finite.unpacking:
            self._hold(run, node)

    def _hold(self, run: BackwardRun, node: Any) -> None:
        key = id(run.site)
        plan = self._plans.get(key)
        if self.session.detailed or key not in self._plans:
            if not self.budget.allows():
                return
            with self.budget.paying():
                plan = self._plans[key] = graph.Plan.learn(node)
                if not self._optimizers:
                    self._leaves = [weakref.ref(leaf) for leaf in graph.leaves(node)]
        if plan is not None:
            risky = plan.follow(node)
            if risky is None and self.budget.allows():  # a graph of another make: learn it anew
                with self.budget.paying():
                    plan = self._plans[key] = graph.Plan.learn(node)
                    risky = plan.follow(node) if plan is not None else None
            self._held = graph.hold(risky or [])
            if self._held and self._named < NAMED and self._lines:
                self._root_node = node

    def after_backward(self, run: BackwardRun) -> None:
        held, self._held = self._held, []
        node, self._root_node = self._root_node, None
        if not (run.accumulate or run.by_hand) or self._bad_root or self._bad_gradients:
            return
        if not self._gradients_bad(run):
            return
        self._bad_gradients = True
        self.session.wake()
        if self._named < NAMED:
            self._name_backward(run, held, node)

    def _gradients_bad(self, run: BackwardRun) -> bool:
        """A sample of the deepest and of a middle gradient always, all of them while it is cheap."""
        if run.accumulate and self._two and not self.session.detailed and not self.budget.allows():
            if all(_sums_up(p.grad) for ref in self._two if (p := ref()) is not None):
                return False
        with self.budget.paying():
            owners = [p for p in self._parameters() if p.grad is not None] if run.accumulate else []
            self._two = [weakref.ref(p) for p in owners[:1] + owners[len(owners) // 2:][:1]]
            every = [p.grad for p in owners] if run.accumulate else run.gradients
            gradients = [g for g in every if g is not None and readable(g) and g.is_floating_point()]
            if not gradients:
                return False
            norm = _norm(gradients)
            if not self._scaled and math.isfinite(norm):
                self.session.metric("raw_grad_norm", norm)  # before any clipping
            return not math.isfinite(norm) and any(not _finite(g) for g in gradients)

    # -- naming --------------------------------------------------------------------------------------------------------

    def _name_forward(self, run: BackwardRun, node: Any) -> None:
        fault = self._fault("forward", run)
        names = self._bad_weights()
        if names:
            # the weights were lost in an earlier step; that fault has been named, or its gradients were finite
            if self._named == 0:
                self._say(changed(fault, phase="step", parameters=names))
            return
        suspect = graph.maker(node) if not Finite.unpacking else None
        if any(not _finite(t) for ref in self._inputs if (t := ref()) is not None):
            fault = changed(fault, phase="input")
        self._say(self._with(fault, suspect, {n._sequence_nr(): type(n).__name__ for n in graph.below(node)}))

    def _name_backward(self, run: BackwardRun, held: list[graph.Held], node: Any) -> None:
        if self._named and self._bad_weights():
            return  # what an earlier fault left behind
        found = list(graph.suspects(held, backward=True))
        # backward runs from the loss down: the last made is the first to go wrong
        suspect = max(found, key=lambda s: s.number, default=None)
        shape = {n._sequence_nr(): type(n).__name__ for n in graph.below(node)} if node is not None else {}
        bad = [p for p in self._parameters() if p.grad is not None and not _finite(p.grad)]
        self._say(self._with(changed(self._fault("backward", run), parameters=self._names(bad)), suspect, shape))

    def _fault(self, phase: str, run: BackwardRun) -> Nonfinite:
        return Nonfinite(step=self.session.step, phase=phase, value=run.value, backward_site=run.site,
                         loss_site=self._loss_site, step_site=self._step_site, scaled=self._scaled)

    def _with(self, fault: Nonfinite, suspect: graph.Suspect | None, shape: dict[int, str]) -> Nonfinite:
        if suspect is None:
            return fault
        place = self._place(shape, suspect)
        candidates = place.candidates
        if suspect.reason in graph.CARRIERS and self._lines:
            candidates = (*self._lines[0].feeding(place.site), *candidates)
        return changed(fault, op=suspect.op, reason=suspect.reason, low=suspect.low, high=suspect.high, bad=suspect.bad,
                       count=suspect.count, shape=suspect.shape, dtype=suspect.dtype, site=place.site,
                       exact=place.exact, candidates=candidates[:4])

    def _place(self, shape: dict[int, str], suspect: graph.Suspect) -> graph.Place:
        places = [lines.place(shape, suspect) for lines in self._lines]
        return next((place for place in places if place.exact), places[0] if places else graph.Place(None, False))

    def _say(self, fault: Nonfinite) -> None:
        self._named += 1
        self.session.emit(fault)

    def _bad_weights(self) -> tuple[str, ...]:
        return self._names([p for p in self._parameters() if readable(p) and not _finite(p)])

    def _names(self, parameters: list[Tensor]) -> tuple[str, ...]:
        """Dotted names of a few parameters, where a root module knows them."""
        wanted = {id(p) for p in parameters}
        names = [name for ref in self._models.values() if (model := ref()) is not None
                 for name, p in model.named_parameters() if id(p) in wanted]
        return tuple(dict.fromkeys(names or ["?"] * len(parameters)))[:SHOWN_NAMES]

    # -- steps ---------------------------------------------------------------------------------------------------------

    def attends(self) -> tuple[str, ...]:
        """Where no operation of any graph can go wrong in its backward alone, the next loss tells: seams wake us for it."""
        return self.always if any(self._plans.values()) else ()

    def before_step(self, run: StepRun) -> None:
        self._step_site = run.site
        if self._bad_gradients or self._bad_root:
            gradients = [g for group in run.optimizer.param_groups for p in group["params"]
                         if (g := p.grad) is not None and readable(g) and g.is_floating_point()]
            if _bad(gradients) or (self._last_bad and not self._scaled and any(map(_moves, gradients))):
                self.summary = changed(self.summary, taken=self.summary.taken + 1)

    def on_event(self, event: Any) -> None:
        if event.what == "scale":
            self._scaled = True

    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        self._steps += missed
        self._inputs_of, self._inputs = self.session.step, [given.input for given in self.session.given]

    def on_tick(self, step: int) -> None:
        self._steps += 1
        self._loss_fault = None
        if self._bad_root or self._bad_gradients or self.session.detailed:
            self._take_stock(step)

    def _take_stock(self, step: int) -> None:
        summary, self._steps = changed(self.summary, steps=self.summary.steps + self._steps), 0
        if self._bad_root or self._bad_gradients:
            summary = changed(summary, bad_roots=summary.bad_roots + self._bad_root, last_bad=step,
                              bad_gradients=summary.bad_gradients + (self._bad_gradients and not self._bad_root))
        if self.session.detailed and not summary.weights_bad and self._samples_bad():
            summary = changed(summary, weights_bad=step)
            if self._named == 0:
                self._say(Nonfinite(step=step, phase="step", step_site=self._step_site, loss_site=self._loss_site,
                                    parameters=self._bad_weights()))
        self.summary = summary
        self._bad_root = self._bad_gradients = False
        if self.session.detailed:
            self._report()

    def _samples_bad(self) -> bool:
        return any(not math.isfinite(float(sample(p, 256).sum())) for p in self._parameters()
                   if p.requires_grad and readable(p) and p.is_floating_point())

    def at_end(self) -> None:
        if self._loss_fault is not None and not self._bad_root:
            self._bad_root = True
            self._say(self._loss_fault)
        self.summary = changed(self.summary, steps=self.summary.steps + self._steps, bad_roots=self.summary.bad_roots + self._bad_root,
                               bad_gradients=self.summary.bad_gradients + (self._bad_gradients and not self._bad_root))
        if not self.summary.weights_bad and self._samples_bad():
            self.summary = changed(self.summary, weights_bad=self.session.step)
        self._report()

    def _report(self) -> None:
        if self.summary != self._said:
            self._said = self.summary
            self.session.emit(changed(self.summary, step=self.session.step))


def _bad(gradients: list[Tensor]) -> bool:
    if not gradients:
        return False
    # the norm of large finite numbers overflows, too
    return not math.isfinite(_norm(gradients)) and any(not _finite(g) for g in gradients)


def _moves(gradient: Tensor) -> bool:
    return bool(sample(gradient, 1024).any())


def _norm(gradients: list[Tensor]) -> float:
    norms = torch._foreach_norm([g.detach() for g in gradients])
    return math.hypot(*torch.stack(norms).tolist()) if len({n.dtype for n in norms}) == 1 else math.hypot(*map(float, norms))


def _sums_up(gradient: Tensor | None) -> bool:
    """Whether the elements add up to a number: one NaN or infinity is enough that they do not."""
    if gradient is None or not readable(gradient) or not gradient.is_floating_point():
        return True
    return math.isfinite(item(total(gradient if gradient.numel() <= 65_536 else sample(gradient, 1024))))


def _finite(tensor: Tensor) -> bool:
    if not readable(tensor) or not tensor.is_floating_point():
        return True
    return bool(torch.isfinite(tensor.detach()).all())
