"""What experiments conclude from traces: pure functions, and the exam over an engine that computes its traces."""
from __future__ import annotations

import math
import random
from itertools import combinations, pairwise

import pytest

from traindx.core.exams import ExamReport
from traindx.core.findings import Finding, Judged
from traindx.core.text import same
from traindx.core.trials import Condition, ConditionState, Program, Step, Trace
from traindx.errors import UsageError
from traindx.exam import chosen_steps, examine, prove_one
from traindx.experiments import bench as benches
from traindx.experiments import kept
from traindx.experiments.bench import Bench, OutOfTime
from traindx.experiments.plans import PLANS, Measurement
from traindx.experiments.proofs import prove
from traindx.experiments.rates import RateRun, grid, read, wider
from traindx.experiments.seeds import spread
from traindx.experiments.shapes import blow_up, shape_of
from traindx.experiments.statistics import CEILING, Comparison, decide, decide_same, level

# -- statistics -------------------------------------------------------------------------------------------------------


def test_level_is_the_mean_log_loss_of_the_last_steps():
    losses = [math.e ** k for k in range(20)]
    assert level(losses) == pytest.approx(sum(range(12, 20)) / 8)
    assert level(losses, 10) == pytest.approx(sum(range(2, 10)) / 8)


def test_a_loss_that_is_not_finite_lies_above_every_other():
    assert level([1.0] * 7 + [math.nan]) == pytest.approx(CEILING / 8)
    assert level([math.inf] * 8) == CEILING


@pytest.mark.parametrize("losses", [[], [0.0] * 8, [-1.0, 2.0]])
def test_no_level_without_a_log_scale(losses):
    assert level(losses) is None


def test_chance_of_parting_is_counted_right():
    """Against a naive count over all ways to deal six ranks to two sides."""
    parted = sum(max(side) < 3 or min(side) > 2 for side in combinations(range(6), 3))
    every = len(list(combinations(range(6), 3)))
    assert Comparison((1, 2, 3), (4, 5, 6), "higher").chance == parted / every == 1 / 10


@pytest.mark.parametrize(("plain", "changed", "refutes", "outcome"), [
    ((1.0, 1.1), (0.5, 0.55), False, "proved"),
    ((1.0, 1.2), (0.5, 0.7), False, "undecided"),  # two seeds need a gap of twice their range
    ((1.0, 1.4), (0.5, 0.9), False, "undecided"),  # the gap is smaller than the range of two seeds
    ((1.0, 1.1, 1.2), (0.6, 0.7, 0.8), False, "proved"),  # half the range is enough with three
    ((1.0, 1.1, 1.2), (0.97, 0.99, 1.0), True, "undecided"),
    ((0.5, 0.55), (1.0, 1.1), True, "refuted"),
    ((0.5, 0.55), (1.0, 1.1), False, "undecided"),
    ((1.0, 1.01), (1.0, 1.02), True, "refuted"),  # all the same, and it would have had to differ
    ((1.0, 1.01), (1.0, 1.02), False, "undecided"),
])
def test_decide(plain, changed, refutes, outcome):
    assert decide(Comparison(plain, changed, "lower"), refutes, last=True) == outcome


def test_the_same_numbers_are_not_refuted_before_all_seeds_are_run():
    assert decide(Comparison((1.0, 1.01), (1.0, 1.02), "lower"), True, last=False) == "undecided"


def test_no_difference_is_proved_only_with_all_seeds():
    alike, apart = Comparison((1.0, 1.02), (1.01, 1.03), "higher"), Comparison((0.5, 0.52), (1.0, 1.1), "higher")
    assert decide_same(alike, last=False) == "undecided"
    assert decide_same(alike, last=True) == "proved"
    assert decide_same(apart, last=False) == "refuted"
    assert decide_same(Comparison((1.0, 1.01), (1.2, 1.5), "higher"), last=True) == "undecided"


# -- shapes -----------------------------------------------------------------------------------------------------------


def falling(steps=300, start=2.3, to=0.0, pace=0.05):
    return [to + (start - to) * math.exp(-pace * k) for k in range(steps)]


@pytest.mark.parametrize(("losses", "shape"), [
    (falling(), "fits"),
    (falling(to=1.46), "flat"),  # the floor of a doubled softmax
    ([2.3] * 300, "flat"),
    ([2.3 + 0.01 * k for k in range(300)], "goes-up"),
    ([2.3 * 1.5 ** k for k in range(300)], "explodes"),
    ([2.3] * 20 + [math.nan] * 10, "explodes"),
    ([2.0 + 1.5 * (-1) ** k for k in range(300)], "oscillates"),
    (falling(pace=0.002), None),  # still on its way
])
def test_shape(losses, shape):
    assert shape_of(losses) == shape


def test_contradictory_labels_set_a_floor_that_counts_as_arrived():
    assert shape_of(falling(to=0.69), floor=0.69) == "fits"
    assert shape_of(falling(to=0.69)) == "flat"


def test_a_start_worse_than_chance_is_not_counted_in_favour():
    """From 60 to 2.3 is nothing learnt, with ten classes."""
    assert shape_of(falling(start=60.0, to=2.3), chance=2.3) == "flat"


@pytest.mark.parametrize(("step", "shape"), [(0.5, "fits"), (1.0, "fits"), (2.5, "explodes")])
def test_shapes_are_values_of_one_multiplier(step, shape):
    """x <- (1 - lr * curvature) x: the loss shrinks by the square of the multiplier, or grows by it."""
    assert shape_of([max((1 - step) ** (2 * k), 1e-12) for k in range(60)]) == shape


def test_blowing_up_at_once_is_told_from_late():
    assert blow_up([2.3 * 10 ** k for k in range(30)]) == "at-once"
    assert blow_up([2.3] * 40 + [math.nan] * 5) == "late"


# -- learning rates ---------------------------------------------------------------------------------------------------


def parabola(rate, steps=100, curvature=1.0, slow=0.01):
    """Gradient descent on two directions of unlike curvature, from (1, 1)."""
    x, y, out = 1.0, 1.0, []
    for _ in range(steps):
        out.append(min(0.5 * (curvature * x * x + slow * y * y), 1e300) + 1e-6)
        x, y = x * (1 - rate * curvature), y * (1 - rate * slow)
        x, y = max(min(x, 1e150), -1e150), max(min(y, 1e150), -1e150)
    return tuple(out)


def sweep(rates, **knobs):
    return [RateRun(rate, (parabola(rate, **knobs),) * 2) for rate in rates]


def test_grid_is_logarithmic_with_both_ends():
    rates = grid()
    assert rates[0] == pytest.approx(1e-6) and rates[-1] == pytest.approx(0.1) and len(rates) == 11
    assert all(b / a == pytest.approx(math.sqrt(10)) for a, b in pairwise(rates))


def test_interval_holds_the_best_rate_and_stays_under_the_divergence():
    runs = sweep(grid(1e-4, 10.0))
    found = read(runs)
    best = min(runs, key=lambda run: run.losses[0][-1]).rate
    assert found.interval[0] <= best <= found.interval[1] * 1.001
    assert found.diverges_at == pytest.approx(math.sqrt(10), rel=1e-6)  # the first of the grid above 2 / curvature
    assert found.infeasible == pytest.approx(2 / 11)


def test_a_best_rate_at_the_edge_asks_for_more_rates():
    runs = sweep(grid(1e-6, 1e-1))
    assert read(runs).interval is None and "largest" in read(runs).refused.en
    more = wider(runs)
    assert more and min(more) > 0.1 and max(more) <= 1.1
    runs += sweep(more)
    runs += sweep(wider(runs))
    assert read(runs).interval is not None and wider(runs) == []


def test_noise_alone_is_refused():
    runs = [RateRun(rate, tuple(tuple(2.3 + random.Random(f"{rate}{seed}").gauss(0, 0.05) for _ in range(100)) for seed in range(2)))
            for rate in grid()]
    found = read(runs)
    assert found.interval is None and "noise" in found.refused.en


def test_nothing_but_divergence_is_refused():
    found = read([RateRun(rate, ((1.0, math.nan),) * 2) for rate in grid()])
    assert found.infeasible == 1.0 and found.interval is None


# -- the bench, proofs and the walk -----------------------------------------------------------------------------------


class Computed:
    """An engine that computes traces: ``curve(trial)`` gives the losses."""

    def __init__(self, curve, **fields):
        self.curve, self.fields, self.ran = curve, fields, []

    def run(self, trials, on_done):
        traces = []
        for index, trial in enumerate(trials):
            self.ran.append(trial)
            losses = self.curve(trial)[:trial.budget.steps]
            still = names_of(trial).get("scale_lr") == {"k": 0.0}
            steps = [Step(k + 1, loss, lr=0.1, grad_norm=abs(loss), moved=0.0 if still else 0.1, inputs="a", target="b", samples=8)
                     for k, loss in enumerate(losses)]
            trace = Trace(steps, ended="steps")
            for condition in trial.conditions:
                state = self.fields.get("states", {}).get(condition.name, ConditionState(condition.name, "applied", how="loader"))
                trace.conditions[condition.name] = state
            trace.facts = {"program": {"losses": [{"function": "cross_entropy"}], "optimizers": [{}]}} | self.fields.get("facts", {})
            traces.append(trace)
            on_done(index, trace)
        return traces


def names_of(trial):
    return {condition.name: condition.settings for condition in trial.conditions}


def judged(rule, experiment):
    return Judged(rule, "error", same(rule), Finding(same("c"), same("f"), None), experiment)


def bench_of(curve, **fields):
    return Bench(Computed(curve, **fields), Program("train.py"))


def noisy(trial, level, steps=400):
    draw = random.Random(f"{trial.reseed}{sorted(names_of(trial))}")
    return [level * math.exp(draw.gauss(0, 0.02)) for _ in range(steps)]


def test_a_trial_is_run_once_however_often_it_is_asked_for():
    bench = bench_of(lambda trial: noisy(trial, 1.0))
    trial = bench.plain.for_steps(5)
    bench.run(same("a"), [trial, trial, trial.seeded(1)])
    bench.one(same("b"), trial)
    assert len(bench.engine.ran) == 2


def test_traces_are_found_again_by_a_later_exam(tmp_path):
    first = Bench(Computed(lambda trial: [1.0, math.nan]), Program("t.py"), folder=tmp_path)
    second = Bench(Computed(lambda trial: [2.0]), Program("t.py"), folder=tmp_path)
    one = first.one(same("a"), first.plain)
    again = second.one(same("a"), second.plain)
    assert again.losses[0] == one.losses[0] == 1.0 and math.isnan(again.losses[1]) and not second.engine.ran


def test_what_is_kept_belongs_to_one_state_of_the_code(tmp_path):
    (tmp_path / "train.py").write_text("a = 1")
    program = Program("train.py", cwd=str(tmp_path))
    before = kept.fingerprint(program)
    assert before == kept.fingerprint(program) != kept.fingerprint(Program("train.py", args=("--lr", "1"), cwd=str(tmp_path)))
    (tmp_path / "model.py").write_text("b = 2")
    assert kept.fingerprint(program) != before
    folder = kept.folder_for(program)
    assert folder is not None and folder.is_dir() and tmp_path not in folder.parents and folder.parent.stat().st_mode & 0o077 == 0
    kept.forget(folder)
    assert not folder.exists()


def test_no_trial_is_begun_when_the_time_is_used_up():
    now = iter([0.0, 1.0, 20.0])
    bench = Bench(Computed(lambda trial: [1.0]), Program("t.py"), seconds=10, clock=lambda: next(now))
    bench.one(same("a"), bench.plain)
    with pytest.raises(OutOfTime):
        bench.one(same("b"), bench.plain.seeded(1))


def test_an_effect_is_proved_with_the_fewest_seeds():
    bench = bench_of(lambda trial: noisy(trial, 0.2 if "logits_instead_of_probabilities" in names_of(trial) else 1.5))
    proof = prove(bench, judged("loss/double-softmax", "logits-instead"))
    assert proof.outcome == "proved" and proof.effect == pytest.approx(math.log(1.5 / 0.2), abs=0.05)
    assert len(bench.engine.ran) == 4 and all(trial.budget.steps == 50 for trial in bench.engine.ran)


def test_an_effect_that_only_a_longer_run_shows():
    def curve(trial):
        late = 0.1 if "scale_lr" in names_of(trial) else 2.0
        return [1.0 + 0.3 * (trial.reseed % 2)] * 80 + [late * (1 + 0.01 * trial.reseed)] * 100
    proof = prove(bench_of(curve), judged("optim/lr-too-high", "lr-x0.1"))
    assert proof.outcome == "proved"


def test_no_effect_refutes_only_where_there_had_to_be_one():
    def alike(trial):
        return noisy(trial, 1.0)
    assert prove(bench_of(alike), judged("optim/lr-too-high", "lr-x0.1")).outcome == "refuted"
    assert prove(bench_of(alike), judged("loss/double-softmax", "logits-instead")).outcome == "undecided"


def test_a_change_that_could_not_be_made_decides_nothing():
    states = {"scale_lr": ConditionState("scale_lr", "not-applicable", same("no optimizer"))}
    proof = prove(bench_of(lambda trial: noisy(trial, 1.0), states=states), judged("optim/lr-too-high", "lr-x0.1"))
    assert proof.outcome == "undecided" and "no optimizer" in proof.why.en


def test_losses_that_are_negative_are_compared_in_units_of_their_range():
    def curve(trait):
        return [1.0 - (0.2 if "squeeze_operand" not in names_of(trait) else 1.5) * min(k, 40) / 40 + 0.001 * trait.reseed for k in range(60)]
    proof = prove(bench_of(curve), judged("shape/silent-broadcast", "squeeze-operand"))
    assert proof.outcome == "proved" and proof.effect == pytest.approx(1.3 / 1.501, rel=0.01) and "range" in proof.why.en


def test_a_rule_without_an_experiment_has_no_proof():
    assert prove(bench_of(lambda trial: [1.0]), judged("curve/spike", None)) is None


def test_gauges_decide_by_themselves():
    leaks = {"batch_dependence": {"mixes": True}}
    finding = judged("shape/batch-mixing", "exchange-one-sample")
    assert prove(bench_of(lambda trial: [1.0] * 3, facts=leaks), finding).outcome == "proved"
    assert prove(bench_of(lambda trial: [1.0] * 3, facts={"batch_dependence": {"mixes": False}}), finding).outcome == "undecided"
    missing = {"batch_dependence": {"not_measured": {"en": "no module", "zh": "没有模块"}}}
    assert "no module" in prove(bench_of(lambda trial: [1.0] * 3, facts=missing), finding).why.en


def healthy(trial):
    """Learns, and its batch can be held."""
    names = names_of(trial)
    if names.get("scale_lr") == {"k": 0.0}:
        return [2.3] * 5
    if "fix_lr" in names:
        return list(parabola(names["fix_lr"]["lr"] * 6))
    if "zero_inputs" in names:
        return noisy(trial, 2.3)
    return falling(400) if "pin_batch" in names else [value + 0.05 for value in falling(400, pace=0.01)]


def walk(curve, steps=(), everything=False, **fields) -> ExamReport:
    return examine(bench_of(curve, **fields), "train.py", steps, everything)


def test_a_healthy_program_passes_in_order():
    report = walk(healthy)
    assert [step.step for step in report.steps] == list(range(7))
    assert {step.step: step.verdict for step in report.steps if step.verdict == "failed"} == {}
    assert report.steps[0].shape == "fits" and report.rate.interval is not None and report.repeatable


def test_the_exam_stops_at_the_first_step_that_fails():
    def stuck(trial):
        names = names_of(trial)
        return [1.46] * 400 if "pin_batch" in names and names.get("scale_lr") != {"k": 0.0} else healthy(trial)
    report = walk(stuck)
    assert (report.steps[0].verdict, report.steps[0].shape) == ("failed", "flat")
    assert all(step.verdict == "not-checked" and "step 0" in step.why.en for step in report.steps[1:])
    assert any(step.verdict == "passed" for step in walk(stuck, everything=True).steps[1:])


def test_a_batch_that_is_not_held_decides_nothing():
    def half_pinned(trial):
        names = names_of(trial)
        return [2.3, 2.1, 2.4, 2.2, 2.0] if names.get("scale_lr") == {"k": 0.0} else healthy(trial)
    report = walk(half_pinned)
    assert report.pinned_by is None and report.steps[0].verdict == "not-checked"


def test_runs_that_differ_are_told():
    count = iter(range(1000))
    report = walk(lambda trial: [1.0 + next(count)] * 20)
    assert report.repeatable is False and any("same seeds differ" in remark.en for remark in report.remarks)


def test_ctrl_c_keeps_what_is_done():
    class Interrupted(Computed):
        def run(self, trials, on_done):
            if any("fix_lr" in names_of(trial) for trial in trials):
                raise KeyboardInterrupt
            return super().run(trials, on_done)
    report = examine(Bench(Interrupted(healthy), Program("t.py")), "t.py")
    assert report.interrupted and report.steps[0].verdict == "passed" and len(report.steps) == 7


def test_steps_are_chosen_by_name_or_number():
    assert chosen_steps(["0,lr", "seeds"]) == ("overfit", "lr", "seeds")
    with pytest.raises(UsageError, match="overfit, data"):
        chosen_steps(["7"])
    with pytest.raises(UsageError, match="²"):
        chosen_steps(["²"])  # a digit that is no number


def test_only_what_was_asked_for_is_examined():
    report = walk(healthy, steps=("lr",))
    assert [step.step for step in report.steps if step.verdict != "not-checked"] == [3]


@pytest.mark.parametrize(("end", "factor", "said"), [
    (1.0, 0.5, "Try a wider model"), (1.0, 0.95, "not what is missing"), (1.0, 1.2, "not what is missing"), (0.5, 0.5, "0.5 -> 0.25.")])
def test_twice_the_width_is_advice_and_never_a_failure(end, factor, said):
    """A model that learns its data needs no more width to learn them faster."""
    def curve(trial):
        wide = "widen" in names_of(trial)  # which the machine lets run for fewer steps
        return [2.0] * 20 + ([factor * end] * 300 if wide else [end] * 300 + [0.9 * end] * 80)
    [step] = [step for step in walk(curve, steps=("capacity",)).steps if step.step == 6]
    assert step.verdict == "passed" and said in step.next.en and "after 320 steps" in step.next.en and "training, twice as wide" in step.curves
    assert ("no sign" in step.why.en) == (end < 1)


def test_a_model_that_cannot_be_made_wider_says_why():
    states = {"widen": ConditionState("widen", "not-applicable", same("two outputs"))}
    [step] = [step for step in walk(healthy, steps=("capacity",), states=states).steps if step.step == 6]
    assert step.verdict == "passed" and "two outputs" in step.next.en and list(step.curves) == ["training"]


def test_a_program_without_training_is_said_to_have_none():
    report = walk(lambda trial: [])
    assert all(step.verdict == "not-checked" for step in report.steps) and report.remarks and report.impossible


def test_a_finding_that_is_not_there_is_not_proved():
    report = prove_one(bench_of(healthy), "train.py", "loss/double-softmax")
    assert not report.steps and "not found" in report.remarks[-1].en


def test_spread_over_seeds_against_the_formula():
    found, curves = spread(bench_of(lambda trial: [float(trial.reseed + 1)] * 30), 3)
    assert found.final == [1.0, 2.0, 3.0] and found.spread == pytest.approx(1.0)
    assert found.noise == pytest.approx(4.303 * math.sqrt(2)) and len(curves) == 3


# -- the table of experiments -----------------------------------------------------------------------------------------


def test_every_experiment_names_conditions_and_gauges_that_exist():
    from traindx import gauges, interventions
    for name, plan in PLANS.items():
        for condition in plan.change:
            assert condition.name in interventions.names(), f"{name}: {condition.name}"
        if isinstance(plan, Measurement):
            assert plan.gauge.name in gauges.names(), name


def test_every_rule_s_experiment_is_one_that_can_be_run():
    from traindx.core.rules import all_rules
    unknown = {rule.name: rule.experiment for rule in all_rules().values() if rule.experiment and rule.experiment not in PLANS}
    assert unknown == {}


def test_keys_of_trials_tell_them_apart():
    plain = bench_of(healthy).plain
    assert benches.key(plain) != benches.key(plain.under(Condition("scale_lr", {"k": 0.1}))) != benches.key(plain.seeded(1))
