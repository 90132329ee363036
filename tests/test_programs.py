"""The gallery: faulty programs in many clothes (tests/faulty, marked ``# expect: family/slug``), healthy ones that tempt (tests/healthy).

A faulty program with lines ``# twin: OLD => NEW`` has a twin in which NEW stands for OLD: the same program, mended. It must be quiet.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from conftest import dump, loud
from test_rule_pairs import ALLOW, marks

HERE = Path(__file__).parent
FAULTY = sorted((HERE / "faulty").glob("*.py"))
CLOTHES = ("plain", "class", "closure", "framework", "helper")
# the most frequent causes of public reports, each in every kind of program
CAUSES = {
    "order and labels": ("data_labels_misaligned__regression_two_orders", "data_labels_misaligned__class", "data_labels_misaligned__closure",
                         "data_not_shuffled__hf_trainer_sampler", "data_labels_misaligned__helper_sorts"),
    "NaN by arithmetic": ("numeric_nonfinite__angle_loss_by_hand", "numeric_nonfinite__masked_mean_of_none", "numeric_nonfinite__closure",
                          "numeric_nonfinite__lightning_cosine", "numeric_nonfinite__helper"),
    "modes": ("mode_train_missing__baseline_before_training", "mode_eval_missing__class", "mode_eval_missing__closure",
              "mode_eval_missing__torchmetrics", "mode_dropout_always_on__helper"),
    "averages": ("optim_accumulation_not_averaged__sums_by_hand", "optim_accumulation_not_averaged__trainer_class",
                 "optim_accumulation_not_averaged__closure", "optim_accumulation_not_averaged__lightning",
                 "optim_accumulation_not_averaged__helper"),
    "lost or aliased state": ("record_best_is_alias__second_name", "record_best_is_alias__early_stopping_class", "record_best_is_alias__closure",
                              "record_best_is_alias__lightning", "record_best_is_alias__helper"),
    "two activations": ("loss_double_softmax__categorical", "loss_double_sigmoid__class", "loss_double_softmax__closure",
                        "loss_double_softmax__skorch", "loss_double_sigmoid__focal"),
    "parameters left out": ("optim_params_missing__handwritten_update", "optim_params_missing__trainer_class", "optim_params_missing__closure",
                            "optim_params_missing__accelerate", "optim_params_missing__helper"),
    "history kept": ("memory_graph_kept__hidden_state", "memory_graph_kept__meter_class", "memory_graph_kept__closure",
                     "memory_graph_kept__lightning", "memory_graph_kept__returned_from_validation"),
    "clipping": ("optim_clip_after_step__before_backward", "optim_clip_after_step__class", "optim_clip_after_step__closure",
                 "optim_clip_after_step__ignite", "optim_clip_after_step__helper"),
    "padding": ("loss_padding_counted__tagger", "loss_padding_counted__class_seq2seq", "loss_padding_counted__closure",
                "loss_padding_counted__lightning", "loss_padding_counted__helper"),
    "leakage": ("data_split_overlap__folds_one_model", "data_split_overlap__class", "data_split_overlap__closure",
                "data_split_overlap__lightning", "data_split_overlap__helper"),
    "zero_grad": ("optim_missing_zero_grad__once_per_epoch", "optim_missing_zero_grad__class", "optim_missing_zero_grad__lbfgs",
                  "optim_missing_zero_grad__accelerate", "optim_missing_zero_grad__closure_helper"),
}
HEALTHY = sorted((HERE / "healthy").glob("*.py"))
TWIN = "# twin: "
MENDED = [script for script in FAULTY if TWIN in script.read_text()]


def prepared(script, tmp_path):
    """A copy outside the repository; programs that need a package that is not there are skipped."""
    source = script.read_text()
    for line in source.splitlines():
        if line.startswith("# needs:"):
            for package in line.removeprefix("# needs:").split():
                pytest.importorskip(package)
    copy = tmp_path / script.name
    copy.write_text(source)
    return copy, source


def allowed(source):
    """Symptoms that are true of the program besides its fault."""
    return {word for line in ALLOW.findall(source) for word in line.replace(",", " ").split()}


def mended(source):
    """The source with every replacement that its ``# twin:`` lines ask for; one that finds nothing to replace is a mistake."""
    lines = source.splitlines()
    body = "\n".join(line for line in lines if not line.startswith(TWIN))
    for line in lines:
        if line.startswith(TWIN):
            old, new = line.removeprefix(TWIN).split(" => ")
            assert body.count(old) == 1, old
            body = body.replace(old, new)
    return body


@pytest.mark.parametrize("script", FAULTY, ids=lambda path: path.stem)
def test_the_cause_is_named_first_and_at_its_line(script, diagnose, tmp_path):
    copy, source = prepared(script, tmp_path)
    expected = marks(source)
    report = diagnose(copy)
    assert loud(report)[:1] == [expected[0][1]], dump(report) + report.metadata["output"]
    finding = report.findings[0].finding
    assert expected[0][0] in [site.line for site in (finding.where, *finding.also) if site], dump(report)
    unexplained = {j.rule for j in report.findings if j.level != "note" and j.explained_by is None}
    assert unexplained - allowed(source) == {expected[0][1]}, dump(report)


@pytest.mark.parametrize("cause", CAUSES)
def test_every_frequent_cause_is_found_in_all_clothes(cause):
    known = {script.stem for script in FAULTY}
    assert len(CAUSES[cause]) == len(CLOTHES) and set(CAUSES[cause]) <= known


@pytest.mark.parametrize("script", MENDED, ids=lambda path: path.stem)
def test_its_mended_twin_is_quiet(script, diagnose, tmp_path):
    copy, source = prepared(script, tmp_path)
    copy.write_text(mended(source))
    report = diagnose(copy)
    assert "Traceback" not in report.metadata["output"], report.metadata["output"]
    assert set(loud(report)) <= allowed(source), dump(report)


@pytest.mark.parametrize("script", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_program_is_quiet(script, diagnose, tmp_path):
    copy, _ = prepared(script, tmp_path)
    report = diagnose(copy)
    assert "Traceback" not in report.metadata["output"], report.metadata["output"]
    assert loud(report) == [], dump(report)
    assert report.remarks == []
