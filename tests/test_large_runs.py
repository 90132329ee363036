"""A record of very many steps: read once as a stream, in little memory, and every extreme of it kept. Against the plain recording."""
from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from traindx.checklist.evidence import gather
from traindx.checklist.judging import judge
from traindx.core.recording import METRICS, Recording, metrics_line
from traindx.runs import comparing, facts, index, kept, metrics, reading
from traindx.runs.curves import BUCKETS, Curves
from traindx.runs.reading import Run

STEPS = 200_000


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lines(first: int, last: int, draw: random.Random) -> str:
    """Two series at every step, one at every fiftieth; here and there a spike, NaN, Inf."""
    odd = {12_345: 1e6, 100_000: -7.0, 150_001: math.nan, 150_002: math.inf, 199_000: 3e5}
    return "".join(metrics_line(step, {"loss": odd.get(step, 2 / math.sqrt(step) + 0.01 * draw.random()), "lr": 0.1}
                                | ({"grad_norm": draw.gauss(0, 1)} if step % 50 == 0 else {})) for step in range(first, last + 1))


@pytest.fixture(scope="module")
def long_file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    (folder / METRICS).write_text(lines(1, STEPS, random.Random(0)))
    return folder


def run_of(folder: Path, **fields) -> Run:
    (folder / "run.json").write_text(json.dumps({"schema": 1, "name": "r", "script": "train.py", "status": "running", "pid": 2**22 + 1, **fields}))
    return Run(folder)


def test_the_extremes_of_every_stretch_are_kept(long_file):
    """Twin: a bucket holds so many points that at most 1200 are needed; the plain list cut into those, the lowest and highest of each."""
    curves, whole = Curves(long_file), Recording.read(long_file)
    while curves.read(2**20):
        pass
    for name, points in whole.series.items():
        found = set(curves.series[name])
        size = 2 ** max(0, math.ceil(math.log2((len(points) + 1) / (2 * BUCKETS))))
        for start in range(0, len(points), size):
            part = [(value, step) for step, value in points[start:start + size] if math.isfinite(value)]
            assert {min(part)[::-1], max(part, key=lambda point: point[0])[::-1]} <= found, (name, start)
        assert len(curves.series[name]) <= 3 * 2 * BUCKETS + 2 and curves.counts[name] == len(points)
    assert {(12_345, 1e6), (100_000, -7.0), (199_000, 3e5)} <= set(curves.series["loss"])
    assert any(not math.isfinite(value) for _, value in curves.series["loss"])
    assert curves.summary == facts.summary(whole) and curves.steps == whole.steps == metrics.last_step(long_file) and curves.lost == 0


def test_values_of_every_kind_are_read_as_the_recording_reads_them(tmp_path):
    rows = ['{"step": 1, "loss": 1, "flag": true, "text": "x", "none": null}', '{"step": 2, "loss": null, "nonfinite": {"loss": "-inf"}}',
            '{"step": 3, "loss": 1e999}', '{"step": 4, "deep": {"a": 1}, "list": [1]}', '{"step": -5, "loss": 2.5}', '{"step": 4, "loss": 7.0}',
            '{"step": true, "loss": 1.0}', '{"step": 9223372036854775808, "loss": 1.0}', '{"step": 1.0, "loss": 1.0}', "null", '"step"', '{"step": 6,']
    (tmp_path / METRICS).write_text("\n".join(rows) + "\n")
    curves, whole = Curves(tmp_path), Recording.read(tmp_path)
    curves.read()
    assert repr(curves.series) == repr(whole.series) and curves.lost == whole.lost == 6
    assert curves.summary == facts.summary(whole)


def test_what_was_read_is_not_read_again(tmp_path, monkeypatch):
    """A second opening goes on behind the last whole line; the outcome is that of one reading."""
    monkeypatch.setattr(kept, "LARGE", 1)
    draw = random.Random(1)
    file = tmp_path / METRICS
    file.write_text(lines(1, 30_000, draw) + '{"step": 30001, "lo')
    shares: list[float] = []
    first = kept.complete(tmp_path, shares.append)
    assert shares and shares[-1] == 1.0 and first.steps == 30_000
    size = file.stat().st_size
    with open(file, "a") as out:
        out.write('ss": 5.0}\n' + lines(30_002, 40_000, draw))
    again = kept.opened(tmp_path)
    assert again.at == size - len('{"step": 30001, "lo') and again.steps == 30_000 and again.series == first.series
    again.read()
    assert again.summary == facts.summary(Recording.read(tmp_path)) and again.counts["loss"] == 40_000 and again.lost == 0
    whole = Curves(tmp_path)
    whole.read()
    assert again.series == whole.series


@pytest.mark.parametrize("spoil", [lambda file, kept_in: file.write_text(lines(1, 500, random.Random(9))),
                                   lambda file, kept_in: file.write_text(lines(1, 1000, random.Random(9))),
                                   lambda file, kept_in: kept_in.write_text('{"schema": 1, "metrics": {"at": "x"}}'),
                                   lambda file, kept_in: kept_in.write_text("[" * 100_000)], ids=["shorter", "another", "nonsense", "deep"])
def test_a_cache_that_does_not_fit_is_no_cache(tmp_path, monkeypatch, spoil):
    monkeypatch.setattr(kept, "LARGE", 1)
    file = tmp_path / METRICS
    file.write_text(lines(1, 1000, random.Random(1)))
    kept.complete(tmp_path)
    (kept_in,) = (tmp_path / "cache" / "traindx" / "curves").iterdir()
    spoil(file, kept_in)
    assert kept.complete(tmp_path).summary == facts.summary(Recording.read(tmp_path))


def test_small_files_are_not_kept(tmp_path):
    (tmp_path / METRICS).write_text(lines(1, 100, random.Random(1)))
    kept.complete(tmp_path)
    assert not (tmp_path / "cache").exists()


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    (tmp_path / METRICS).write_text(lines(1, 1000, random.Random(1)))
    curves = Curves(tmp_path)
    curves.read()
    (tmp_path / METRICS).write_text(lines(1, 10, random.Random(2)))
    curves.read()
    assert curves.summary == facts.summary(Recording.read(tmp_path))


def test_a_killed_run_is_listed_and_judged_without_its_points(tmp_path, long_file, monkeypatch):
    """Nothing that lists, shows or checks may hold every point of it."""
    monkeypatch.setattr(reading, "MOST_POINTWISE", 1)
    monkeypatch.setattr(Run, "recording", property(lambda run: pytest.fail("all points were read")))
    runs = tmp_path / "runs"
    for name in ("a", "b"):
        (runs / name).mkdir(parents=True)
        (runs / name / METRICS).symlink_to(long_file / METRICS)
        (runs / name / "record.json").write_text('{"seeds": {}}')
        run_of(runs / name)
    (row, _) = index.rows(runs)
    assert row["status"] == f"killed at step {STEPS}" and row["steps"] == STEPS and row["best"] == {"metric": "loss", "value": -7.0, "step": 100_000}
    assert judge(gather(Run(runs / "a"), runs))
    assert comparing.diff(Run(runs / "a"), Run(runs / "b"))["curves"] == {"not_compared": True}


def test_what_a_page_has_read_the_next_one_need_not(tmp_path, long_file, monkeypatch):
    records = pytest.importorskip("traindx.studio.records", reason="the studio is an extra")
    monkeypatch.setattr(kept, "LARGE", 1)
    runs = tmp_path / "runs"
    (runs / "a").mkdir(parents=True)
    (runs / "a" / METRICS).symlink_to(long_file / METRICS)
    run_of(runs / "a", status="finished")
    live = records.Live(runs, "a")
    while not live.over:
        news = live.news()
    assert news["steps"] == STEPS and records.page(runs, "a")["read"] == 1 == kept.opened(runs / "a").share
    assert not kept.opened(runs / "a").read()
