"""Who learns: the leaves of the loss against what the optimizers hold and what really moves."""
from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from traindx.core.judge import Absent
from traindx.core.observed import Site
from traindx.core.observed.learning import Leaf, Leaves, RateSeen
from traindx.core.observed.mode import ForwardPass
from traindx.core.observed.program import LossCall, ModelSeen, OptimizerMade, Parameter
from traindx.core.recording import Recording
from traindx.core.text import Text

ENOUGH = 3  # looked-at backwards
_NO_BACKWARD = Text("no backward was looked at", "没有看过反向传播")


@dataclass(frozen=True)
class Learners:
    """Leaves by id, with the names that the models give them, and the optimizers.

    ``held`` are ids in any optimizer that ever was; ``running`` the last step at which a model ran, ``rates`` what each
    optimizer's steps looked like.
    """

    leaves: dict[int, Leaf]
    names: dict[int, tuple[ModelSeen, Parameter]]
    models: dict[int, ModelSeen]
    running: dict[int, int]
    optimizers: list[OptimizerMade]
    rates: dict[int, RateSeen]
    walks: int
    input_size: float

    @classmethod
    def of(cls, recording: Recording) -> Learners | Absent:
        seen = recording.last(Leaves)
        if seen is None or seen.walks == 0:
            return Absent(_NO_BACKWARD)
        names: dict[int, tuple[ModelSeen, Parameter]] = {}
        latest: dict[int, ModelSeen] = {}
        for model in recording.of(ModelSeen):
            latest[model.id] = model
            for parameter in model.parameters:
                known = names.get(parameter.id)
                if known is None or len(model.parameters) > len(known[0].parameters):
                    names[parameter.id] = (model, parameter)
        running: dict[int, int] = {}
        for forward in recording.of(ForwardPass):
            running[forward.model] = max(running.get(forward.model, 0), forward.last_step)
        rates = {rate.optimizer: rate for rate in recording.of(RateSeen)}
        return cls({leaf.id: leaf for leaf in seen.leaves}, names, latest, running, recording.of(OptimizerMade), rates,
                   seen.walks, seen.input_size)

    @property
    def current(self) -> set[int]:
        """Parameters of the models that ran."""
        return {parameter.id for model in self.models.values() for parameter in model.parameters}

    @property
    def held(self) -> set[int]:
        return {id for made in self.optimizers for group in made.parameters for id in group}

    def stepped(self) -> list[OptimizerMade]:
        """Optimizers that took three steps or more."""
        return [made for made in self.optimizers if made.id in self.rates and self.rates[made.id].steps >= ENOUGH]

    def unheld(self) -> list[Leaf]:
        """Leaves that take part in the loss, get gradients, are in no optimizer and never move."""
        held = self.held
        return [leaf for leaf in self.leaves.values() if leaf.id not in held and _takes_part(leaf) and not _moves(leaf)]

    def missing(self) -> list[Leaf]:
        """Of those, the ones that were surely meant to learn: not loaded, not a teacher's in eval mode, not inputs."""
        loose = any(not leaf.is_parameter and (leaf.id in self.held or leaf.changed) for leaf in self.leaves.values())
        return [leaf for leaf in self.unheld() if not leaf.pretrained and not (leaf.ran and not leaf.ran_in_train)
                and (leaf.is_parameter or loose or not leaf.registered)]

    def thawed(self) -> list[Leaf]:
        """Leaves that were unfrozen, take part with gradients since then, and stay where they are: what steps now was built without them."""
        return [leaf for leaf in self.leaves.values() if leaf.thawed and leaf.is_parameter and leaf.registered and _takes_part(leaf)
                and leaf.thawed_graded >= ENOUGH and leaf.thawed_compared >= ENOUGH and not leaf.thawed_changed
                and leaf.last_step - leaf.thawed >= ENOUGH and self._stepped_without(leaf)]

    def _stepped_without(self, leaf: Leaf) -> bool:
        """Optimizers stepped until the leaf last took part, and none of them holds it."""
        after = self.stepped_after(leaf.thawed)
        return (any(self.rates[made.id].last_step >= leaf.last_step - 1 for made in after)
                and not any(leaf.id in group for made in after for group in made.parameters))

    def stepped_after(self, step: int) -> list[OptimizerMade]:
        return [made for made in self.stepped() if self.rates[made.id].last_step > step]

    def learning(self) -> list[Leaf]:
        """Leaves that take part and that something moves."""
        held = {id for made in self.stepped() for group in made.parameters for id in group}
        return [leaf for leaf in self.leaves.values() if _takes_part(leaf) and (leaf.id in held or leaf.changed)]

    def stale(self) -> list[OptimizerMade]:
        """Optimizers that go on stepping although none of their parameters takes part any more."""
        found = []
        for made in self.stepped():
            ids = {id for group in made.parameters for id in group}
            last = max((self.leaves[id].last_step for id in ids if id in self.leaves), default=0)
            stepped = self.rates[made.id].last_step
            if ids and stepped - last >= ENOUGH and not ids & self.running_after(stepped - ENOUGH):
                found.append(made)
        return found

    def running_after(self, step: int) -> set[int]:
        """Parameters of the models that ran after this step (of all models, where forwards were not watched)."""
        return {parameter.id for model in self.models.values() if self.running.get(model.id, step + 1) > step
                for parameter in model.parameters}

    def name(self, leaf: Leaf) -> str:
        """``fc.weight``, as the largest model that holds it says; a bare attribute otherwise."""
        known = self.names.get(leaf.id)
        if known is not None:
            return known[1].name
        return f"{leaf.module}.{leaf.name}" if leaf.module and leaf.name else leaf.name

    def made_at(self, leaf: Leaf) -> Site | None:
        known = self.names.get(leaf.id)
        return leaf.made_at or (known[1].made_at if known is not None else None)

    def model(self, leaf: Leaf) -> int:
        known = self.names.get(leaf.id)
        return known[0].id if known is not None else 0

    def optimizer_for(self, leaves: list[Leaf], among: list[OptimizerMade] | None = None) -> OptimizerMade | None:
        """The optimizer that one would have expected to hold these: the one with most parameters of the same models."""
        models = {self.model(leaf) for leaf in leaves}

        def kinship(made: OptimizerMade) -> int:
            ids = [id for group in made.parameters for id in group]
            return sum(1 for id in ids if id in self.names and self.names[id][0].id in models)
        return max(among or self.stepped() or self.optimizers, key=kinship, default=None)

    def listed(self, leaves: list[Leaf], limit: int = 4) -> str:
        """Names for a sentence: ``fc.weight, fc.bias and 3 more``."""
        names = list(dict.fromkeys(name for leaf in leaves if (name := self.name(leaf))))
        return ", ".join(names[:limit]) + (f" (+{len(names) - limit})" if len(names) > limit else "")


def elements(leaves: list[Leaf]) -> int:
    return sum(math.prod(leaf.shape) for leaf in leaves)


def sites_of(learners: Learners, leaves: list[Leaf]) -> tuple[Site, ...]:
    """Where their modules were made, first to last, each once."""
    return tuple(dict.fromkeys(site for leaf in leaves if (site := learners.made_at(leaf)) is not None))


def _takes_part(leaf: Leaf) -> bool:
    return (leaf.took_part >= ENOUGH and leaf.graded >= ENOUGH - 1 and leaf.last_step - leaf.first_step >= ENOUGH - 1
            and not leaf.is_input and leaf.requires_grad)


def _moves(leaf: Leaf) -> bool:
    return leaf.changed > 0 or leaf.compared < ENOUGH - 1


@dataclass(frozen=True)
class Course:
    """The training loss from start to end: medians of its first and last tenth, its height before and between."""

    values: list[float]
    start: float
    end: float
    best: float
    highest: float
    steps: int

    @classmethod
    def of(cls, recording: Recording) -> Course | Absent:
        values = [value for _, value in recording.series.get("loss", [])]
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) < 8:
            return Absent(Text("fewer than 8 training losses", "训练损失不足 8 个"))
        part = max(3, len(finite) // 10)
        smooth = [statistics.median(finite[i:i + part]) for i in range(0, len(finite) - part + 1, part)]
        start, end = statistics.median(finite[:min(part, 8)]), statistics.median(finite[-part:])
        return cls(values, start, end, min(smooth), max(finite), len(values))


def ordinary(learners: Learners, losses: list[LossCall], start: float) -> bool:
    """A training whose loss is meant to fall: one optimizer, losses that enter with a plus, nothing pretrained."""
    weights = [call.weight_in_root for call in losses if call.grad and call.weight_in_root is not None]
    learning = learners.learning()
    return (len(learners.stepped()) <= 1 and start > 0 and bool(learning) and all(weight > 0 for weight in weights)
            and not any(leaf.pretrained or leaf.is_input for leaf in learning))


def typical(numbers: list[float]) -> float:
    """The median; 0.0 of nothing."""
    return statistics.median(numbers) if numbers else 0.0
