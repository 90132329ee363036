"""traindx shapes: dimensions by evidence, broadcasts as grids, assertions that really run, a pass with one sample."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import torch

from traindx import cli
from traindx.core.observed import ProbeFailed
from traindx.core.observed.ops import Input, Op
from traindx.core.observed.shapes import OtherBatch
from traindx.probes.fewer import fewer, mapped, samples_in
from traindx.reporters import shapes as reporter
from traindx.reporters.layout import width
from traindx.reporters.style import PLAIN
from traindx.signals.assertions import assertions_of, pasted, sizes_of, text_of
from traindx.signals.shapes import Dim, Grid, Row, aligned, broadcast, cells, folded, follows, roles, shapes_of

ROOT = Path(__file__).parent.parent
CLASSIFIER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X, Y = torch.randn(70, 3, 8, 8), torch.randint(0, 5, (70,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(256, 5)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        flat = x.flatten(1)
        scores = self.fc(flat)
        return scores + 0


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True):
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
print("weights", sum(float(p.detach().double().sum()) for p in net.parameters()))
"""
REGRESSION = """
import torch
from torch import nn
torch.manual_seed(0)
X, Y = torch.randn(100, 6), torch.randn(100)
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(3):
    for rows in torch.randperm(100).split(32):
        gap = net(X[rows]) - Y[rows]
        loss = (gap ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.fixture
def look(observe, tmp_path, monkeypatch):
    """look(source) -> (recording, Shapes) of three steps of it; the script is script.py in the working directory."""
    monkeypatch.chdir(tmp_path)

    def run(source, **options):
        recording = observe(source, max_steps=3, looks={"shapes": {}}, **options)
        assert not recording.of(ProbeFailed), recording.of(ProbeFailed)
        return recording, shapes_of(recording)
    return run


def names(dims) -> list[str]:
    return [dim.name for dim in dims]


def row_of(shapes, op, at=0):
    return [row for row in shapes.rows if row.op == op][at]


# -- dimensions ------------------------------------------------------------------------------------------------------

def test_layers_and_operations_with_their_lines_and_named_dimensions(look):
    _, shapes = look(CLASSIFIER)
    assert [row.op for row in shapes.rows] == ["Conv2d", "relu", "flatten", "Linear", "add", "cross_entropy"]
    conv, loss = row_of(shapes, "Conv2d"), row_of(shapes, "cross_entropy")
    assert conv.inputs[0] == (Dim("B", 16), Dim("C", 3), Dim("H", 8), Dim("W", 8)) and conv.module == "conv"
    assert conv.where.line == 16 and conv.where.function == "forward"
    assert loss.inputs == ((Dim("B", 16), Dim("K", 5)), (Dim("B", 16),)) and loss.out == ()
    assert shapes.batch.size == 16 and shapes.batch.fewer == 15 and shapes.batch.how == "loader"
    assert shapes.single == "passed" and not shapes.troubles


def test_merged_dimensions_follow_the_batch_too(look):
    _, shapes = look("""
import torch
from torch import nn
X, Y = torch.randn(64, 5, 6), torch.randint(0, 4, (64, 5))
net = nn.Linear(6, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for rows in torch.randperm(64).split(16):
        out = net(X[rows])
        loss = nn.functional.cross_entropy(out.reshape(-1, 4), Y[rows].reshape(-1))
        opt.zero_grad(); loss.backward(); opt.step()
""")
    loss = row_of(shapes, "cross_entropy")
    assert loss.inputs == ((Dim("B*5", 80), Dim("K", 4)), (Dim("B*5", 80),))
    assert shapes.batch.how == "rows" and shapes.batch.fewer == 15


def test_time_first_batches_are_told_by_what_becomes_smaller(look):
    _, shapes = look("""
import torch
from torch import nn
from torch.utils.data import DataLoader
data = [(torch.randn(7, 3), i % 2) for i in range(40)]
collate = lambda items: (torch.stack([x for x, _ in items], dim=1), torch.tensor([y for _, y in items]))
rnn, head = nn.GRU(3, 8), nn.Linear(8, 2)
opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=10, collate_fn=collate):
        loss = nn.functional.cross_entropy(head(rnn(x)[0][-1]), y)
        opt.zero_grad(); loss.backward(); opt.step()
""")
    assert row_of(shapes, "GRU").inputs[0] == (Dim("T", 7), Dim("B", 10), Dim("d", 3))


def test_a_batch_in_a_dict_with_texts_and_a_dataclass_inside(look):
    _, shapes = look("""
import torch
from dataclasses import dataclass
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Target:
    y: torch.Tensor
    names: list


def collate(items):
    return {"x": torch.stack([x for x, _ in items]), "target": Target(torch.tensor([y for _, y in items]), [str(y) for _, y in items])}


data = [(torch.randn(4), i % 3) for i in range(36)]
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for batch in DataLoader(data, batch_size=9, collate_fn=collate):
        assert len(batch["target"].names) == len(batch["x"])
        loss = nn.functional.cross_entropy(net(batch["x"]), batch["target"].y)
        opt.zero_grad(); loss.backward(); opt.step()
""")
    assert shapes.batch.fewer == 8 and shapes.single == "passed"
    assert names(row_of(shapes, "Linear").inputs[0]) == ["B", "d"]


@pytest.mark.parametrize(("source", "samples"), [
    ("x = x.view(16, 256)", (15, 1)),  # a size in the code: any other batch fails
    ("x = nn.functional.batch_norm(x.flatten(1), None, None, training=True)", (1,)),  # one sample has no spread
])
def test_shape_dependent_crashes_are_found_before_they_happen(look, source, samples):
    recording, shapes = look(CLASSIFIER.replace("flat = x.flatten(1)", f"{source}; flat = x.flatten(1)"))
    assert tuple(trouble.samples for trouble in shapes.troubles) == samples
    assert shapes.troubles[-1].where.line == 17 and shapes.single == "failed"
    assert recording.status == 0 and len(shapes.rows) > 5  # the run itself is not touched


def test_rows_that_cannot_all_be_made_smaller_prove_nothing(look):
    """A whole graph: its adjacency matrix keeps its size, which is no fault of the program."""
    _, shapes = look("""
import torch
from torch import nn
X, A, Y = torch.randn(30, 4), torch.eye(30), torch.randint(0, 2, (30,))
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = nn.functional.cross_entropy(A @ net(X), Y)
    opt.zero_grad(); loss.backward(); opt.step()
""")
    assert not shapes.troubles and shapes.single == "not-checked"
    assert "B" not in {dim.name for row in shapes.rows for dim in row.out} and shapes.batch.why


def test_a_script_of_one_step_says_why_nothing_is_known(look):
    _, shapes = look(REGRESSION.replace("range(3)", "range(1)").replace("split(32)", "split(100)"))
    assert shapes.step == 1 and shapes.batch.fewer is None and shapes.batch.why and not shapes.troubles


def test_a_child_never_touches_the_run(look, observe):
    plain = observe(CLASSIFIER)
    recording = observe(CLASSIFIER, looks={"shapes": {}})
    assert len(recording.of(OtherBatch)) == 2 and all(other.trace for other in recording.of(OtherBatch))
    assert "weights" in plain.output and recording.output == plain.output


def test_nothing_that_a_child_does_reaches_files(look, tmp_path):
    _, shapes = look(CLASSIFIER.replace("        out = net(x)", "        open('log.txt', 'a').write(f'{len(x)}\\n'); out = net(x)"))
    assert (tmp_path / "log.txt").read_text().split() == ["16", "16", "16"]
    assert shapes.batch.fewer is None and "outside the process" in shapes.batch.why and not shapes.troubles


def test_ragged_zero_size_and_complex_tensors_are_looked_at(look):
    _, shapes = look("""
import torch
from torch import nn
from torch.utils.data import DataLoader
data = [(torch.randn(3 + i % 4, 2), i % 2) for i in range(24)]
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    for xs, ys in DataLoader(data, batch_size=8, collate_fn=lambda items: tuple(zip(*items))):
        empty = torch.zeros(0, 3)
        wave = torch.fft.fft(torch.stack([x.mean(0) for x in xs]))
        loss = nn.functional.cross_entropy(net(wave.real), torch.tensor(ys)) + empty.sum()
        opt.zero_grad(); loss.backward(); opt.step()
""")
    assert shapes.batch.fewer == 7 and shapes.single == "passed"
    assert row_of(shapes, "fft_fft" if any(r.op == "fft_fft" for r in shapes.rows) else "fft").out[0].name == "B"


# -- broadcasts ------------------------------------------------------------------------------------------------------

def test_a_silent_broadcast_is_shown_as_the_grid_it_makes(look):
    _, shapes = look(REGRESSION)
    row = row_of(shapes, "sub")
    assert row.note == "broadcast (32,1)+(32) -> (32,32)" and row.grid == Grid((32, 1), (32,), (32, 32), "-")
    assert names(row.out) == ["B", "B"] and row.where.line == 10
    text = reporter.render(shapes, "script.py", "en", PLAIN, 80)
    assert "a3-b0  a3-b1  a3-b2  a3-b3" in text


@pytest.mark.parametrize(("shapes", "note", "grid"), [
    (((4, 1), (1, 4)), "broadcast (4,1)+(1,4) -> (4,4)", Grid((4, 1), (1, 4), (4, 4), "-")),
    (((4, 1), (4,)), "broadcast (4,1)+(4) -> (4,4)", Grid((4, 1), (4,), (4, 4), "-")),
    (((4, 3), (3,)), "broadcast (3) -> (4,3)", None),
    (((4, 3), (4, 3)), "", None), (((4, 3), ()), "", None),
])
def test_broadcast_notes(shapes, note, grid):
    op = Op(0, "sub", None, tuple(Input(shape, "float32") for shape in shapes), (), "float32")
    assert broadcast(op) == (note, grid)


@pytest.mark.parametrize(("left", "right"), [((3, 1), (3,)), ((2, 1, 5), (4, 5)), ((1, 3), (2, 1)), ((6, 1), (1, 5))])
def test_cells_are_what_torch_computes(left, right):
    """The drawn pairs, against torch's own broadcasting of numbered tensors."""
    out = torch.broadcast_shapes(left, right)
    rank = len(out)
    padded = [(1,) * (rank - len(shape)) + shape for shape in (left, right)]
    down = next(d for d in range(rank) if padded[1][d] == 1 < out[d])
    along = next(d for d in range(rank) if padded[0][d] == 1 < out[d])

    def numbered(shape, dim):
        sizes = [1] * rank
        sizes[dim] = out[dim]
        return torch.arange(out[dim]).view(sizes).expand(shape)
    a, b = numbered(padded[0], down) + torch.zeros(out, dtype=torch.long), numbered(padded[1], along) + torch.zeros(out, dtype=torch.long)
    rows, columns, inner = cells(Grid(left, right, tuple(out), "-"))
    for i in range(len(rows)):
        for j in range(len(columns)):
            place = [0] * rank
            place[down], place[along] = i, j
            assert inner[i][j] == f"a{int(a[tuple(place)])}-b{int(b[tuple(place)])}"


# -- assertions ------------------------------------------------------------------------------------------------------

def paste_and_run(source, recording, tmp_path, style, extra=()):
    assertions = assertions_of(recording, tmp_path, style)
    text = pasted(source, assertions)
    (tmp_path / "pasted.py").write_text(text)
    path = os.pathsep.join([*extra, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "pasted.py"], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"})
    return text, done


@pytest.mark.parametrize("style", ["plain", "jaxtyping"])
def test_pasted_assertions_run_through_all_batches_and_fail_on_a_wrong_shape(look, tmp_path, style):
    if style == "jaxtyping":
        pytest.importorskip("jaxtyping")
    recording, _ = look(CLASSIFIER)
    text, done = paste_and_run(CLASSIFIER, recording, tmp_path, style)
    assert done.returncode == 0, done.stderr  # the last batch of an epoch has 6 samples only
    assert text.count("assert ") >= 7 and "scores" in text
    (tmp_path / "pasted.py").write_text(text.replace("nn.Linear(256, 5)", "nn.Linear(256, 6)"))
    broken = subprocess.run([sys.executable, "pasted.py"], capture_output=True, text=True, cwd=tmp_path)
    assert "AssertionError" in broken.stderr and "scores" in broken.stderr


def test_pasted_assertions_catch_a_broadcast_that_is_mended_wrongly(look, tmp_path):
    recording, _ = look(REGRESSION.replace("net(X[rows])", "net(X[rows]).squeeze(-1)"))
    source = REGRESSION.replace("net(X[rows])", "net(X[rows]).squeeze(-1)")
    text, done = paste_and_run(source, recording, tmp_path, "plain")
    assert done.returncode == 0, done.stderr
    assert "assert rows.shape == (rows.shape[0],), rows.shape" in text  # 100 rows in parts of 32: the last has 4
    _, broken = paste_and_run(REGRESSION, recording, tmp_path, "plain")
    assert "AssertionError: torch.Size([32, 32])" in broken.stderr


def test_a_name_that_several_lines_may_have_set_is_not_asserted(look, tmp_path):
    source = REGRESSION.replace("        loss =", "        if epoch:\n            gap = gap * 2\n        loss =")
    recording, _ = look(source)
    settings = text_of(assertions_of(recording, tmp_path), tmp_path)
    assert "gap.shape" not in settings and "loss.shape == ()" in settings
    _, done = paste_and_run(source, recording, tmp_path, "plain")
    assert done.returncode == 0, done.stderr


def test_sizes_that_vary_are_left_open():
    seen = [(8, (8, 5, 16)), (7, (7, 5, 14)), (8, (8, 6, 16))]
    assert [(size.factor, size.size) for size in sizes_of(seen)] == [(1, None), (0, None), (2, None)]


# -- the rest of the view ---------------------------------------------------------------------------------------------

def test_follows_and_roles():
    assert list(aligned("abbbcd", "abbcd", str)) == [("a", "a"), ("b", "b"), ("b", "b"), ("c", "c"), ("d", "d")]
    assert follows(32, 31, 32, 31) == "B" and follows(64, 62, 32, 31) == "B*2" and follows(32, 32, 32, 31) is None
    assert roles("Conv1d", 3) == ("", "C", "L") and roles("BatchNorm2d", 4) == ("", "C", "H", "W") and roles("ReLU", 2) == ()


def test_repeated_layers_are_folded():
    rows = [Row(None, op, f"layers.{i}.{op}", ((Dim("B", 4), Dim("", 8)),), (Dim("B", 4), Dim("", 8))) for i in range(12) for op in ("Linear", "ReLU")]
    assert [each if isinstance(each, tuple) else each.op for each in folded(rows)] == ["Linear", "ReLU", (2, 11)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_text_keeps_to_80_columns_in_both_languages(look, language):
    _, shapes = look(CLASSIFIER)
    text = reporter.render(shapes, "script.py", language, PLAIN, 80)
    assert max(width(line) for line in text.splitlines()) <= 80
    assert ("B = 16（实测" if language == "zh" else "B = 16 (measured") in text
    assert "[B=16, C=3, H=8, W=8] -> Conv2d -> [B, 4, 8, 8]" in text


def test_batches_of_every_kind_are_cut():
    x = torch.arange(12).reshape(4, 3)
    assert fewer((x, ["a", "b", "c", "d"]), 4, 3)[1] == ["a", "b", "c"]
    assert fewer({"x": x, "n": 4}, 4, 1)["x"].shape == (1, 3)
    assert fewer([torch.zeros(7, 4)], 4, 3)[0].shape == (7, 3)
    assert samples_in((x, torch.zeros(4)), None) == 4 and samples_in(torch.zeros(()), 3) is None
    sparse = torch.eye(4).to_sparse()
    assert fewer((sparse, x), 4, 3)[0] is sparse and mapped(5, lambda t: t) == 5


# -- the command -----------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object", "required": ["schema", "rows", "batch_dim", "asserts"],
    "properties": {"schema": {"const": 1}, "asserts": {"type": "string"}, "batch_dim": {"type": "object"}, "rows": {"type": "array", "items": {
        "type": "object", "required": ["where", "op", "module", "in", "out", "note"],
        "properties": {"in": {"$ref": "#/$defs/dims"}, "out": {"$ref": "#/$defs/dims"}, "note": {"type": "string"}}}}},
    "$defs": {"dims": {"type": "array", "items": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}}}}


def test_the_command_on_the_example(tmp_path):
    page = tmp_path / "shapes.html"
    done = subprocess.run([sys.executable, "-m", "traindx", "shapes", "--json", "-", "--html", str(page), "--lang", "en", "examples/digits.py"],
                          capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["batch_dim"]["size"] == 50 and document["batch_of_one"]["verdict"] == "passed"
    assert document["rows"][0]["in"] == [["B", 50], ["C", 1], ["H", 8], ["W", 8]]
    assert "assert scores.shape == (image.shape[0], 10)" in document["asserts"]
    assert "Conv2d" in page.read_text() and 'lang="zh-CN"' in page.read_text()


@pytest.mark.parametrize(("words", "said"), [
    ((), "needs a script"), (("nothing.py",), "no such script"), (("--json", "s.py/y.json", "s.py"), "cannot be written"),
    (("--style", "numpy", "s.py"), "invalid choice"),
])
def test_bad_usage_is_status_2(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    Path("s.py").write_text("pass\n")
    assert cli.main(["shapes", "--lang", "en", *words] if words else ["shapes", "--lang", "en"]) == 2
    assert said in capsys.readouterr().err


def test_a_script_without_training_says_so_and_keeps_its_status(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.py").write_text("import sys\nsys.exit(5)\n")
    assert cli.main(["shapes", "--lang", "en", "s.py"]) == 5
    assert "No training step was seen" in capsys.readouterr().err

