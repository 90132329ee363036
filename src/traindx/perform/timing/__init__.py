"""Runs one trial for its timings: ``trial.gauges[0].settings`` say which, ``trial.conditions`` are switched on and off by turns.

Settings: ``variants`` (names of the conditions, in their order); ``kind``: ``profile``, ``pairs``, ``search`` or ``trace``; ``seconds`` for
all of it; ``first``: steps at the beginning under ``first_variant``, whose losses are told; ``groups`` of variants to be timed side by side,
``rounds`` times, in blocks of ``block_seconds``; ``trace``: some steps under torch.profiler, after all else; ``under``: a variant that is on
for the whole profile; ``find``: where no DataLoader gives the batches, the run ends after its first steps with the ``route`` by which the
program makes them itself, if there is any; ``route``: one that was found. Facts sent: ``program``, ``first``, ``route``, ``bare``,
``profile``, ``blocks``, ``torch``, ``tried``, ``best``, ``states``, ``seen``.
"""
from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from traindx.core.codec import decode, encode
from traindx.core.trials import Trial
from traindx.interventions.extend_epochs import ExtendEpochs
from traindx.interventions.loader_settings import LoaderSettings
from traindx.interventions.tools.handmade import HandMade
from traindx.interventions.tools.stage import Send
from traindx.interventions.tools.switched import Switched
from traindx.perform import Performance, randomness, running
from traindx.perform.timing import plans
from traindx.perform.timing.clock import Clock
from traindx.perform.timing.conductor import AS_WRITTEN, BARE, Block, Conductor, Plan
from traindx.perform.timing.facts import Facts
from traindx.perform.timing.finder import Finder
from traindx.perform.timing.growth import Growth
from traindx.perform.timing.operations import Operations, call_seconds
from traindx.perform.timing.profile import profile_of
from traindx.perform.timing.sampler import Sampler
from traindx.perform.timing.taps import Taps
from traindx.perform.timing.tracing import TOO_MANY, Tracing
from traindx.probes import patching
from traindx.speed.route import Route


def perform(trial: Trial, send: Send, folder: Path) -> None:
    Timing(trial, send, folder, os._exit).play()


class Timing(Performance):
    """The performance of a timed trial."""

    def watch(self, stack: ExitStack, seeds: randomness.Reseeded) -> None:
        self.job: dict[str, Any] = self.trial.gauges[0].settings
        self.stage.limit = None
        self.epochs = stack.enter_context(ExtendEpochs(self.stage))
        self.epochs.on = False
        switched = [one for one in self.interventions if isinstance(one, Switched)]
        self.variants = dict(zip(self.job["variants"], switched))
        for variant in switched:
            variant.on = False
        self.facts = Facts(self.stage, self.job.get("first", 0))
        self.clock = Clock(self.stage)
        self.growth = Growth(self.clock)
        self.taps = Taps(self.clock, stack)
        self.tracing = Tracing(stack, self.folder)
        self.finder = Finder(self.stage)
        self.route = decode(Route, self.job.get("route") or {})
        self.hand = HandMade(self.route.makings)
        if self.route.makings:
            self.hand.install(stack)
            patching.replace(stack, running, "compiled", lambda original: self.hand.compiled)
        if self.job.get("find"):
            self.stage.add(self.finder)
        self.leader = Conductor(self.stage, self.variants, self._evaluated, self._mode, self.stop, self.job["seconds"])
        for part in (self.facts, self.clock, self.growth, self.leader):
            self.stage.add(part)
        self._looking = ExitStack()
        self._operations: Operations | None = None
        self._operation_steps = 0
        self.leader.begin(self._plan())

    # -- what the conductor asks ------------------------------------------------------------------------------------------

    def _evaluated(self) -> bool:
        """Whether the model was evaluated since this was last asked, unless that belongs to every step (a teacher, a target network)."""
        evaluated, self.facts.evaluated = self.facts.evaluated, False
        return evaluated and not self.facts.evaluates_always

    def _mode(self, mode: str, begins: bool) -> None:
        if mode in BARE:
            self.stage.active = not (begins and self.stage.stepped)
        if mode == "trace":
            self.tracing.mark() if begins else self.tracing.unmark()
        if mode == "look":
            self._look(begins)
        if mode == "count":
            self._count(begins)

    def _look(self, begins: bool) -> None:
        if begins:
            self.taps.watch_logs()
            self.sampler = Sampler(self.clock, self.stage.owner, self.route.lines)
            self._looking.enter_context(self.sampler)
            self.clock.start()
        else:
            self.clock.stop()
            self._looking.close()

    def _count(self, begins: bool) -> None:
        """Through the clock too, so that phases are known; its seconds of these steps are not used."""
        if begins:
            self._kept = dict(self.clock.seconds), self.clock.steps, self.clock.calls
            self.clock.calls = {}
            self._operations = Operations(self.clock, self.route.lines)
            self.clock.start()
            self._operations.__enter__()
        elif self._operations is not None:
            self._operations.__exit__(None, None, None)
            self.clock.stop()
            self._operation_steps = self.clock.steps - self._kept[1]
            with self.stage.quiet():
                self._operations.call_seconds = call_seconds(self.facts.device)
            self.clock.seconds, self.clock.steps, self.clock.calls = self._kept

    # -- the plans --------------------------------------------------------------------------------------------------------

    def _tell(self, name: str, value: Any) -> None:
        self.send({"fact": [name, encode(value)]})

    def _plan(self) -> Plan:
        variant = self.job.get("first_variant", AS_WRITTEN)
        seconds = yield from plans.first_losses(self.job.get("first", 0), variant)
        self._tell("first", {"losses": self.facts.losses, "seconds": seconds})
        self._tell("program", self.facts.told())
        if self.job.get("find") and not self.epochs.loads:
            route = self.finder.route()
            self._tell("route", route)
            if route.makings or route.lines:
                self._end()
                return
        self.finder.done = True
        self.epochs.on = self.hand.endless = bool(self.job.get("extend", True))
        yield from {"profile": self._profile, "pairs": self._pairs, "search": self._search, "trace": self._trace}[self.job["kind"]]()
        self._end()

    def _pairs(self) -> Plan:
        yield from plans.groups(self.leader, self.job["groups"], self.job["rounds"], self.job["block_seconds"], self._tell)

    def _search(self) -> Plan:
        loader = self.variants[plans.SEARCH]
        assert isinstance(loader, LoaderSettings)
        yield from plans.search_plan(self.leader, loader, self.job, self._tell)

    def _profile(self) -> Plan:
        under = self.job.get("under", AS_WRITTEN)
        if not under:
            bare = yield from plans.baseline(self.job["look_seconds"], 8, self.stage.stepped)
            self._tell("bare", bare.seconds)
        looked = yield from plans.look(under, self.job["look_seconds"], 12)
        if not self.stage.compiled:
            yield Block(under, 2, 1, "count", most=2)
        profile = profile_of(self.clock, self.taps.loaders, self.sampler.counts, looked.seconds, self._operations, self._operation_steps)
        profile["first_nodes"], profile["evaluates"] = self.facts.nodes, self.facts.evaluates_always
        profile["grown"] = {"name": self.growth.grown, "file": self.growth.file}
        self._tell("profile", profile)
        if self.job["rounds"] and (asked := self._worth_it(profile)):
            yield from plans.groups(self.leader, asked, self.job["rounds"], self.job["block_seconds"], self._tell)
        if self.job.get("trace"):
            yield from self._trace(looked.mean, _operations_of(profile))

    def _trace(self, step_seconds: float = 0.0, operations: float = 0.0) -> Plan:
        """A step to warm the profiler up, and some that count; others in their place where something else went on (an epoch's end)."""
        steps = plans.steps_to_trace(step_seconds, operations)
        if not steps:
            self._tell("torch", {"why": TOO_MANY.fill(count=round(operations))})
            return
        yield Block(AS_WRITTEN, 1, 0, "trace")
        for _ in range(plans.TRACES):
            traced = yield Block(AS_WRITTEN, steps, 0, "trace")
            self.tracing.timed(traced.seconds)
            if plans.even(traced.seconds):
                break
        self._tell_traced()

    def _tell_traced(self) -> None:
        with self.stage.quiet():
            self._tell("torch", self.tracing.result())

    def _worth_it(self, profile: dict[str, Any]) -> list[list[str]]:
        """What takes some part of the step is taken away, each alone."""
        total = sum(profile["seconds"].values()) or 1.0
        floor = self.job.get("worth", 0.03)
        by_phase = {"held": "input", "unlogged": "logging", "unread": "sync"}
        return [[AS_WRITTEN, name] for name in self.variants if profile["seconds"].get(by_phase.get(name, ""), 0.0) > floor * total]

    def _end(self) -> None:
        states = {name: encode(variant.state()) for name, variant in self.variants.items()}
        self._tell("states", states)
        self._tell("seen", {"steps": self.leader.steps, "forwards": self.facts.forwards, "cuda": torch.cuda.is_available()})

    def finish(self, ended: Any, error: str) -> None:
        if not self.ended and hasattr(self, "leader"):
            self._looking.close()
            if self.tracing.has_some:
                self._tell_traced()
            self.tracing.abandon()
            self._end()
        super().finish(ended, error)


def _operations_of(profile: dict[str, Any]) -> float:
    """Of a step; 0 where they were not counted."""
    return sum(((profile["operations"] or {}).get("by_phase") or {}).values())
