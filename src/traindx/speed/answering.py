"""The report of a program: baseline, bottleneck, data, compute, in that order."""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from traindx.core.amounts import percent
from traindx.core.codec import decode, encode
from traindx.core.speed import BatchPoint, Change, Profiled, SpeedReport
from traindx.core.text import EMPTY, Text, number
from traindx.core.trials import Condition, Program
from traindx.engine.processes import cores, free_memory
from traindx.errors import UsageError
from traindx.speed import by_hand, load
from traindx.speed.asking import Answer, Asker
from traindx.speed.changes import NOT_TRIED, TIME_UP, Candidate, candidates, no_verdict, result_of
from traindx.speed.findings import findings_of
from traindx.speed.reading import baseline_of, lines_of, measured_of, profiled_of
from traindx.speed.route import Route
from traindx.speed.statistics import interval_of, median, outcome_of, ratios_of
from traindx.speed.verdict import elasticity_of, judge

PLAIN = ""
HELD, TWICE, FOUR = "held", "twice", "four"
TIMES = {HELD: 1, TWICE: 2, FOUR: 4}
ROUNDS = 9
FEW = 3
BLOCK_SECONDS = 0.1
LOOK_SECONDS = 1.5
NEEDED = 30  # steps: the first few, some without timers, some with
SEARCH_WORTH = 0.05  # of a step spent in fetching, from which loader settings are searched
WORKER_BYTES = 200 << 20  # that a worker may take (rule of thumb)

LOOKING = Text("timing the program as it is", "按原样计时")
AGAIN = Text("timing it again, with its loop known", "弄清训练循环之后，再计一次时")
CURVE = Text("the same batch, larger", "同一个 batch，逐步加大")
TRACING = Text("some steps under torch.profiler", "在 torch.profiler 下跑几步")
INSIDE = Text("fetching in one process, line by line", "在一个进程里逐行看取数据")
SEARCHING = Text("settings of the loader", "loader 的设置")
TRYING = Text("trying {what}", "尝试：{what}")
NO_STEPS = Text("no training step could be timed: {how}. `traindx run {subject}` tells what was seen of it.",
                "一个训练步也没有计到时：{how}。可以用 `traindx run {subject}` 看程序里发生了什么。")
NEEDS_GPU = Text(" The program asks for a GPU, and there is none here; traindx memory {subject} still tells what it needs.",
                 " 程序要求有 GPU，这里没有；traindx memory {subject} 仍然能算出它需要多少显存。")
RAISED = Text("the program ended by {error}", "程序因 {error} 结束")
ENDED = Text("the program came to its end too early", "程序结束得太早")
NO_BACKWARD = Text("a model was called {count} time{count:|s}, but no backward followed: nothing was trained",
                   "模型调用了 {count} 次，后面却没有反向传播：什么也没训练")
NO_MODEL = Text("the program came to its end without training: no model was called", "程序没有训练就结束了：没有调用过模型")
AFTER = Text("{how}, after {steps} training step{steps:|s}; about {needed} are needed",
             "{how}，此前跑了 {steps} 个训练步；至少要 {needed} 步左右")
NOT_APART = Text("the time of a step could not be taken apart: {how}, after {steps} training step{steps:|s}",
                 "没能把一步的时间拆开看：{how}，此前跑了 {steps} 个训练步")
TOO_LONG = Text("it took more than {seconds} s (--seconds N allows more)", "超过了 {seconds} 秒（--seconds N 可以放宽）")
REFUSED = Text("Step 4 (compute) is not tried while the training waits for its data: the device would only wait longer. "
               "--force tries it anyway.",
               "数据还没跟上，先不试第 4 步（计算）：算得再快也只是多等。要硬试就加 --force。")
ITERABLE = Text("an IterableDataset: more workers would each read everything, unless it shares out the data itself",
                "这是 IterableDataset：除非它自己划分数据，多个 worker 会把数据各读一遍")
GONE = Text("a loader with persistent workers is made anew each time and cannot be reached: make it once, before the loop",
            "每次都新建一个带常驻 worker 的 loader，没法换它的设置：请在循环之前建好，只建一次")
FAST_ENOUGH = Text("fetching is {share} of a step: nothing to gain", "取数据只占每步的 {share}：没什么可提高的")
SETTINGS = Text("loader: {name}", "loader：{name}")
AS_IT_IS = Text("loader settings", "loader 的设置")
NO_BETTER = Text("no setting of {count} that were tried is clearly better than the program's own: {tried}",
                 "试了 {count} 种设置，没有一种明显好于现在的：{tried}")
PERSIST = Text("persistent_workers=True keeps the workers from one epoch to the next.",
               "persistent_workers=True 让 worker 从一轮留到下一轮。")
GROWS = Text("Steps get slower as the graph grows: mend that first, the other numbers change with it.",
             "计算图越来越大，步子越来越慢：先改掉它，其他数字都会跟着变。")
INTERRUPTED = Text("Stopped by Ctrl-C: what was done is shown.", "按 Ctrl-C 中止：以下是已经做完的部分。")
QUICK = Text("--quick: nothing was tried.", "--quick：没有尝试改动。")
BUSY = Text("The machine is busy (load {average} on {cores} core{cores:|s} before we began): the numbers are less sure, and trials have no "
            "verdict. --any-load judges them all the same.",
            "机器很忙（开始前负载 {average}，{cores} 个核）：数字不太可靠，各项尝试不下结论。加 --any-load 照样下结论。")


class Progress(Protocol):
    """One line for each question."""

    def begin(self, title: Text, trials: int) -> None: ...
    def advance(self) -> None: ...
    def end(self) -> None: ...


class Speeding:
    """One program under questions."""

    def __init__(self, asker: Asker, subject: str, progress: Progress, any_load: bool = False, most_workers: int | None = None) -> None:
        self.asker, self.subject, self.progress, self.any_load = asker, subject, progress, any_load
        self.most_workers = most_workers
        self.report = SpeedReport(subject)
        self.plain: list[list[float]] = []  # the first losses of runs as written
        self.route = Route()  # by which the program makes its batches itself

    def ask(self, title: Text, job: dict[str, Any], variants: dict[str, Condition]) -> Answer:
        self.progress.begin(title, 1)
        try:
            known = {"route": encode(self.route)} if self.route.makings or self.route.lines else {}
            settings = {"rounds": ROUNDS, "block_seconds": BLOCK_SECONDS, "look_seconds": LOOK_SECONDS, **known, **job}
            answer = self.asker.ask(settings, variants)
            self.progress.advance()
        finally:
            self.progress.end()
        if not job.get("first_variant") and (losses := (answer.facts.get("first") or {}).get("losses")):
            self.plain.append(losses)
        return answer

    # -- steps 1 and 2 ----------------------------------------------------------------------------------------------------

    def diagnose(self) -> Answer:
        """Raises UsageError where no step was seen."""
        variants = {HELD: Condition("hold_batch"), "unlogged": Condition("skip_logging"), "unread": Condition("skip_reads")}
        answer = self._look(variants)
        baseline = baseline_of(answer)
        if baseline is None:
            raise UsageError(self._failure(answer))
        report = self.report
        report.baseline, report.load = baseline, answer.load
        profile = answer.facts.get("profile")
        found = self._profiled(answer)
        if profile is None:
            report.profiled = found if found.why == EMPTY else None  # why not is told below for all
            report.why = NOT_APART.fill(steps=_seen(answer, "steps"), how=self._how(answer))
            return answer
        report.profiled = found
        if judge(measured_of(answer))[0] == "compute-bound" or measured_of(answer).small:
            self._curve(profile)
        seen = measured_of(answer, report.elasticity)
        report.held, report.shares, report.ops = seen.held, seen.shares, round(seen.ops) if seen.ops else None
        report.phases = {name: seconds / profile["steps"] for name, seconds in profile["seconds"].items()}
        report.verdict, report.why = judge(seen)
        inside = self._inside(profile) if seen.share("input") > SEARCH_WORTH else None
        report.lines = lines_of(profile)
        report.input_lines = lines_of(inside or profile, ("input",))
        report.findings = findings_of(profile, seen, report.verdict, inside)
        if not profile["loader"]["batches"]:
            report.remarks.append(by_hand.remark(self.route))
        if any(judged.rule == "memory/graph-kept" for judged in report.findings):
            report.remarks.insert(0, GROWS)
        return answer

    def _look(self, variants: dict[str, Condition]) -> Answer:
        """Where the program makes its batches itself, once more with these lines known; as it is if it does not bear that."""
        answer = self.ask(LOOKING, {"kind": "profile", "find": True, "trace": True}, variants)
        self.route = decode(Route, answer.facts.get("route") or {})
        if self.route.makings or self.route.lines:
            answer = self.ask(AGAIN, {"kind": "profile", "trace": True}, variants)
            if answer.error and "profile" not in answer.facts:
                self.route = Route(unclear=True)
                answer = self.ask(LOOKING, {"kind": "profile", "trace": True}, variants)
        return answer

    def _profiled(self, answer: Answer) -> Profiled:
        """Of a run of its own, where the program was over before its turn."""
        if "torch" not in answer.facts and answer.ended == "script" and not answer.error and answer.seconds < self.asker.seconds:
            again = self.ask(TRACING, {"kind": "trace", "rounds": 0}, {})
            answer.facts |= {name: again.facts[name] for name in ("torch",) if name in again.facts}
        return profiled_of(answer) or Profiled(why=self._how(answer))

    def _how(self, answer: Answer) -> Text:
        """How a run ended before all was timed."""
        if answer.error:
            return RAISED.fill(error=answer.error)
        return TOO_LONG.fill(seconds=number(self.asker.seconds)) if answer.ended == "seconds" else ENDED

    def _failure(self, answer: Answer) -> Text:
        steps, forwards = _seen(answer, "steps"), _seen(answer, "forwards")
        how = self._how(answer)
        if steps:
            how = AFTER.fill(how=how, steps=steps, needed=NEEDED)
        elif answer.ended == "script" and not answer.error:
            how = NO_BACKWARD.fill(count=forwards) if forwards else NO_MODEL
        asks = not _seen(answer, "cuda") and any(word in answer.error for word in ("CUDA", "NVIDIA", "cuda", "GPU"))
        return NO_STEPS.fill(how=how, subject=self.subject) + (NEEDS_GPU.fill(subject=self.subject) if asks else EMPTY)

    def _curve(self, profile: dict[str, Any]) -> None:
        """The same batches once, twice and four times over: what a step takes with more of them, and nothing else changed."""
        partly = self.route.lines or self.route.unclear  # a part of the batch would stay as it is
        if partly or not (profile["loader"]["batches"] or self.route.found or self.route.constant):
            return
        way = {"inputs": True} if self.route.constant else {}
        variants = {name: Condition("hold_batch", {"times": times, **way}) for name, times in TIMES.items()}
        answer = self.ask(CURVE, {"kind": "pairs", "groups": [list(variants)], "rounds": 5}, variants)
        blocks = [{name: times * block[name] for name, times in TIMES.items()} for block in answer.blocks if block.keys() >= TIMES.keys()]
        if not blocks or any(answer.state(name).get("state") != "applied" for name in variants):
            return
        self.report.elasticity = median([elasticity_of(block[HELD], block[TWICE]) for block in blocks])
        self.report.batch_curve = [BatchPoint(times, median([block[name] for block in blocks])) for name, times in TIMES.items()]

    def _inside(self, profile: dict[str, Any]) -> dict[str, Any] | None:
        """Where workers fetch, a look at the same fetching in the program's own process."""
        if not profile["loader"].get("num_workers"):
            return None
        variants = {"inside": Condition("loader_settings", {"workers": 0})}
        answer = self.ask(INSIDE, {"kind": "profile", "under": "inside", "rounds": 0}, variants)
        return answer.facts.get("profile")

    # -- step 3 -----------------------------------------------------------------------------------------------------------

    def search(self, profile: dict[str, Any], cuda: bool) -> None:
        loader = profile["loader"]
        share = self.report.shares.get("input", 0.0)
        if not loader["batches"]:
            if self.route.found:
                self.report.data.append(by_hand.ahead(self.report, self.route, min(cores(), self.most_workers or cores())))
            return
        if share < SEARCH_WORTH or loader.get("iterable") or "num_workers" not in loader:
            why = FAST_ENOUGH.fill(share=percent(share)) if share < SEARCH_WORTH else ITERABLE if loader.get("iterable") else GONE
            self.report.data.append(Change("loader", AS_IT_IS, why=NOT_TRIED.fill(why=why)))
            return
        job = {"kind": "search", "workers": loader["num_workers"], "most": self._most(loader["num_workers"]), "cuda": cuda, "few": FEW,
               "pairs": ROUNDS, "block_seconds": 2 * BLOCK_SECONDS}
        answer = self.ask(SEARCHING, job, {"search": Condition("loader_settings")})
        self.report.data.append(self._searched(answer))

    def _most(self, current: int) -> int:
        """Workers at most: one for each core, as far as memory goes."""
        free = free_memory()
        by_memory = cores() if free is None else max(1, int(free // 2 // WORKER_BYTES))
        return max(1, min(self.most_workers or cores(), by_memory), current)

    def _searched(self, answer: Answer) -> Change:
        tried, best = [one for one in answer.facts.get("tried") or [] if one["pairs"]], answer.facts.get("best")
        interval = interval_of(ratios_of(answer.blocks, PLAIN, "search"))
        if best is None or interval is None:
            told = ", ".join(f"{one['setting']} x{one['ratio']:.2f}" for one in tried)
            why = NO_BETTER.fill(count=len(tried), tried=told) if tried else NOT_TRIED.fill(why=TIME_UP)
            return Change("loader", AS_IT_IS, why=why, load=answer.load)
        outcome = outcome_of(interval, answer.load, self.any_load)
        name = best["name"] + (", persistent_workers=True" if best["workers"] else "")
        seconds = (median([block[PLAIN] for block in answer.blocks]), median([block["search"] for block in answer.blocks]))
        return Change(best["name"], SETTINGS.fill(name=best["name"]), interval, outcome, EMPTY if outcome else no_verdict(interval, answer.load),
                      load=answer.load, diff=Text(f"+ DataLoader(..., {name})", f"+ DataLoader(..., {name})"),
                      remark=PERSIST if best["workers"] else EMPTY, seconds=seconds)

    # -- step 4 -----------------------------------------------------------------------------------------------------------

    def compute(self, program: dict[str, Any], force: bool, wanted: Sequence[str]) -> None:
        if self.report.verdict == "input-bound" and not force:
            self.report.compute_refused = REFUSED
            return
        for candidate in candidates(program):
            if not wanted or candidate.name in wanted:
                self.report.compute.append(self._try(candidate))

    def _try(self, candidate: Candidate) -> Change:
        if candidate.unfit != EMPTY:
            return Change(candidate.name, candidate.title, why=NOT_TRIED.fill(why=candidate.unfit))
        job = {"kind": "pairs", "groups": [[PLAIN, candidate.name]], **({"first_variant": candidate.name} if candidate.first else {"first": 2})}
        answer = self.ask(TRYING.fill(what=candidate.title), job, {candidate.name: candidate.condition})
        return result_of(candidate, answer, self.plain, self.any_load)


def report_on(program: Program, subject: str, progress: Progress, *, seconds: float = 20.0, force: bool = False, quick: bool = False,
              any_load: bool = False, most_workers: int | None = None, wanted: Sequence[str] = (), network: bool = False) -> SpeedReport:
    """All four steps; Ctrl-C in the last two keeps what is done. Raises UsageError where nothing can be said."""
    began = time.monotonic()
    average = load.average()
    with Asker(program, seconds, network, average) as asker:
        speeding = Speeding(asker, subject, progress, any_load, most_workers)
        answer = speeding.diagnose()
        report, profile, facts = speeding.report, answer.facts.get("profile"), answer.facts.get("program") or {}
        if report.load is not None and report.load.too_much and not any_load:
            report.remarks.append(BUSY.fill(average=number(average or 0.0, 2), cores=cores()))
        if quick:
            report.remarks.append(QUICK)
        elif profile is not None:
            try:
                speeding.search(profile, facts.get("device") == "cuda")
                speeding.compute(facts, force, wanted)
            except KeyboardInterrupt:
                report.interrupted = True
                report.remarks.insert(0, INTERRUPTED)
    report.seconds = time.monotonic() - began
    return report


def _seen(answer: Answer, what: str) -> int:
    """``steps`` or ``forwards`` of the whole run; ``cuda``: whether there is a GPU."""
    return int((answer.facts.get("seen") or {}).get(what, 0))
