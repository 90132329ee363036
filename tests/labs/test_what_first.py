"""An opinion that says that it is one; its order is that of the bars' first letters of the chapter: data and bugs first."""
from traindx.labs.what_first import CHANGES, KINDS, LAB, compute, next_of


def test_every_verdict_says_that_it_is_no_measurement():
    for state in LAB.states():
        outcome = compute(state)
        assert "not a measurement" in outcome.verdict.en and "主观" in outcome.verdict.zh and "主观" in outcome.figures[0].title.zh


def test_data_and_bugs_come_before_the_learning_rate_and_the_optimizer_last():
    names = [change.name.en for change in CHANGES]
    assert names[:3] == ["look at the data", "overfit one batch", "sweep the learning rate"] and names[-2:] == ["another optimizer", "activation, layers"]
    for kind in range(len(KINDS)):
        assert CHANGES[0].gain[kind] == 100 and CHANGES[-1].gain[kind] == min(change.gain[kind] for change in CHANGES)


def test_the_next_thing_is_the_first_that_is_not_done():
    assert next_of(0) is CHANGES[0] and next_of(len(CHANGES)) is None
    assert "in a clean environment" in compute({"done": float(len(CHANGES)), "kind": "text"}).verdict.en
