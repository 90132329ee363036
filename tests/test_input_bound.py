"""Waiting for data counts where the loader itself is slow and the run as a whole suffers from it."""
from __future__ import annotations

from traindx.core.observed.data import LoaderMade
from traindx.core.observed.speed import LoaderTime, Reads
from traindx.rules.speed.input_bound.rule import check


def _level(*, queued: float = 0.0, elapsed: float = 25.0) -> str | None:
    """Of 100 batches that took 20 s, 15 of them waiting."""
    loader = LoaderMade(id=1, site=None, iter_site=None, dataset_class="Rows", dataset_size=100, batch_size=1, shuffle=False,
                        sampler="SequentialSampler", workers=0, drop_last=False)
    time = LoaderTime(loader=1, batches=100, seconds=20.0, waiting=15.0, queued=queued, elapsed=elapsed)
    return next((finding.level for finding in check([time], [loader])), None)


def test_a_slow_loader_of_the_whole_run() -> None:
    assert _level() == "warning"


def test_a_busy_machine_is_no_slow_loader() -> None:
    assert _level(queued=19.0) == "note"  # 0.75 s remain
    assert _level(queued=20.0) is None


def test_a_validation_that_waits_in_a_run_that_trains() -> None:
    assert _level(elapsed=100.0) == "note"


READING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(20)])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x = torch.randn(8, 4)
for step in range(12):
    optimizer.zero_grad()
    out = model(x)
    loss = out.pow(2).mean()
    loss.backward()
    optimizer.step()
    {reads}
"""


def test_what_an_optimizer_reads_of_its_own_counters_is_not_the_programs_reading(observe):
    reads = observe(READING.format(reads="loss.item()")).of(Reads)
    assert [(line.site.code, line.count) for line in reads] == [("loss.item()", 1)]
    many = observe(READING.format(reads="values = [out[i, j].item() for i in range(8) for j in range(4)]")).of(Reads)
    assert [line.count for line in many] == [32]
