"""traindx data: what reaches the model is shown as it is, and what is said of it is counted right."""
from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zlib
from pathlib import Path

import numpy as np
import pytest

from conftest import watch_in_child
from traindx import cli
from traindx.core.observed import ProbeFailed
from traindx.core.observed.samples import SplitSeen
from traindx.core.recording import Recording
from traindx.probes.sample_features import features_of, kind_of
from traindx.probes.sample_sources import decoded
from traindx.reporters.layout import width
from traindx.reporters.style import PLAIN
from traindx.samples import labels as label_module
from traindx.samples import told
from traindx.samples.compare import alike, conflicts, exact, groups, near, stem_of
from traindx.samples.labels import counts_of, suspects_of, tail_of, votes_of
from traindx.samples.load import Split, name_of
from traindx.samples.page import render
from traindx.samples.pictures import pixels_of, png, wave
from traindx.samples.report import document, report_of
from traindx.samples.serve import Review
from traindx.samples.shift import shifts

ROOT = Path(__file__).parent.parent
LOOP = """
net = nn.Sequential(nn.Flatten(), nn.Linear(D, C))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(3):
    net.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        hits = sum(int((net(x).argmax(1) == y).sum()) for x, y in valid_loader)
print("weights", sum(float(p.detach().double().sum()) for p in net.parameters()), torch.rand(1).item())
"""
IMAGES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
torch.manual_seed(0)
C, D = 3, 256
kinds = torch.randn(C, 1, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3) * 3


class Pictures(Dataset):
    classes = ["cat", "dog", "owl"]

    def __init__(self):
        self.y = torch.arange(240) % C
        self.y[200:236] = 0
        self.x = kinds[self.y] + torch.randn(240, 1, 16, 16) * 0.5
        self.x[7] = self.x[3]                       # a copy within training
        self.y[7] = (self.y[3] + 1) % C             # with another label
        self.x[230] = self.x[5]                     # a training picture in validation
        self.x[231] = self.x[6] * 1.3 + 0.4 + torch.randn(1, 16, 16) * 0.01   # nearly one
        self.y[11], self.y[12] = (self.y[11] + 1) % C, (self.y[12] + 1) % C   # wrong labels
        self.files = [f"scans/patient{i // 24}_{i % 24:03d}.png" for i in range(240)]

    def __len__(self):
        return 240

    def __getitem__(self, i):
        return self.x[i], self.y[i]


data = Pictures()
train_loader = DataLoader(Subset(data, range(200)), batch_size=25, shuffle=True)
valid_loader = DataLoader(Subset(data, range(200, 240)), batch_size=20)
""" + LOOP


@pytest.fixture
def collect(tmp_path):
    """collect(source) -> (DataReport, what the script printed)."""
    def run(source, wanted=5, **options):
        script, folder = tmp_path / "script.py", tmp_path / f"recording-{len(list(tmp_path.iterdir()))}"
        script.write_text(source)
        folder.mkdir()
        watch_in_child(script, folder, looks={"samples": {"wanted": wanted}}, **options)
        recording = Recording.read(folder)
        assert not recording.of(ProbeFailed), recording.of(ProbeFailed)
        return report_of(recording, folder, "script.py"), (folder / "output.txt").read_text()
    return run


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The report on IMAGES, once."""
    folder = tmp_path_factory.mktemp("pictures")
    script = folder / "script.py"
    script.write_text(IMAGES)
    watch_in_child(script, folder, looks={"samples": {"wanted": 12}})
    recording = Recording.read(folder)
    assert not recording.of(ProbeFailed)
    return report_of(recording, folder, "script.py")


def split_of(hashes=(), labels=(), features=None, name="train", kind="classes", feature="table", files=(), unique=True, **arrays):
    count = len(hashes)
    seen = SplitSeen(name=name, number=0, model=1, class_name="Net", site=None, samples=count, batches=1, row_shape=(4,), dtype="float32",
                     feature=feature, label_kind=kind, file="", unique=unique, files=tuple(files))
    return Split(seen, {"hashes": np.array(hashes, np.uint64), "labels": np.array(labels, float), "indices": np.full(count, -1),
                        "features": np.zeros((0, 0)) if features is None else features, **arrays})


# -- what is collected -----------------------------------------------------------------------------------------------

def test_one_pass_of_training_and_evaluation_with_labels_and_names(pictures):
    train, valid = pictures.splits
    assert (train.name, train.seen.samples, valid.name, valid.seen.samples) == ("train", 200, "validation", 40)
    assert train.seen.feature == "image" and train.seen.label_kind == valid.seen.label_kind == "classes"
    assert train.seen.names == ("cat", "dog", "owl") and train.class_name(2.0) == "2 owl"
    assert sorted(train.arrays["indices"]) == list(range(200)) and train.seen.row_shape == (1, 16, 16)
    assert len(train.seen.shown) == 12 and train.arrays["shown-0-0"].shape == (1, 16, 16)
    assert sum(counts_of(train).values()) == 200 and counts_of(valid)[0.0] >= 36


def test_the_shown_samples_are_those_of_the_dataset_with_their_labels(pictures, tmp_path):
    """Against the dataset itself, read again by its own code."""
    namespace: dict = {}
    exec(IMAGES.split("net = nn.Sequential")[0], namespace)
    data, train = namespace["data"], pictures.splits[0]
    for place, shown in enumerate(train.seen.shown):
        index = int(train.arrays["indices"][shown.index])
        assert np.array_equal(train.arrays[f"shown-{place}-0"], data.x[index].numpy()) and shown.label == int(data.y[index])


def test_copies_conflicts_near_copies_and_leaks_are_found(pictures):
    names = {(p.first, p.second) for copies in pictures.exact for p in copies.pairs}
    spelt = {tuple(sorted((pictures.splits[a].row(x), pictures.splits[b].row(y)))) for (a, x), (b, y) in names}
    assert spelt == {("train[3]", "train[7]"), ("train[5]", "validation[30]")}
    [(pair, a, b)] = pictures.conflicts
    assert {pictures.splits[i].row(x) for i, x in (pair.first, pair.second)} == {"train[3]", "train[7]"} and a != b
    across = next(copies for copies in pictures.near if copies.where == (0, 1))
    assert {(pictures.splits[0].row(p.first[1]), pictures.splits[1].row(p.second[1])) for p in across.pairs} == {("train[6]", "validation[31]")}


def test_wrong_labels_are_candidates_and_nothing_else(pictures, monkeypatch):
    monkeypatch.setattr(label_module, "_by_cleanlab", lambda votes, ids: None)
    suspects = suspects_of(pictures.splits[0])
    found = {pictures.splits[0].row(s.place) for s in suspects.found}
    assert suspects.way == "neighbours" and {"train[11]", "train[12]"} <= found <= {"train[11]", "train[12]", "train[7]"}
    assert suspects.accuracy > 0.95


def test_cleanlab_where_it_is_installed(pictures):
    pytest.importorskip("cleanlab")
    suspects = suspects_of(pictures.splits[0])
    assert suspects.way == "cleanlab" and {"train[11]", "train[12]"} <= {pictures.splits[0].row(s.place) for s in suspects.found}


def test_groups_are_hinted_at_by_file_names(pictures):
    [group] = pictures.groups
    assert 0.3 < group.share < 0.5  # patient8 is in both: files 192..199 in training, 200..215 in validation
    assert all("patient8" in name for pair in group.examples for name in pair)


def test_the_run_is_not_changed(collect, observe):
    source = IMAGES.replace("range(3)", "range(1)")
    _, output = collect(source)
    assert "weights" in output and output == observe(source).output


def test_the_program_ends_when_enough_was_seen(collect):
    report, output = collect(IMAGES.replace("range(3)", "range(500)"), seconds=100)
    assert "weights" not in output and [split.seen.samples for split in report.splits] == [200, 40]


PROGRAMS = {
    "no loader, values": ("""
import torch
from torch import nn
X, Y = torch.randn(90, 5), torch.randn(90)
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for rows in torch.randperm(90).split(30):
    loss = ((net(X[rows]).squeeze(-1) - Y[rows]) ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""", ("table", "none", 90)),
    "values": ("""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x, y in DataLoader(TensorDataset(torch.randn(90, 5), torch.randn(90, 1)), batch_size=30):
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
""", ("table", "values", 90)),
    "evaluation without no_grad": ("""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(5, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
held_out = DataLoader(TensorDataset(torch.randn(30, 5), torch.arange(30) % 2), batch_size=30)
for epoch in range(2):
    net.train()
    for x, y in DataLoader(TensorDataset(torch.randn(90, 5), torch.arange(90) % 2), batch_size=30):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    for x, y in held_out:
        score = (net(x).argmax(1) == y).float().mean()
""", ("table", "classes", 90)),
    "dict in a dataclass, iterable": ("""
import torch
from dataclasses import dataclass
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(60):
            yield torch.full((5,), float(i)), i % 2


@dataclass
class Batch:
    inputs: dict
    label: torch.Tensor


def collate(items):
    return Batch({"x": torch.stack([x for x, _ in items])}, torch.tensor([y for _, y in items]))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 2)

    def forward(self, inputs):
        return self.fc(inputs["x"])


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.001)
for batch in DataLoader(Stream(), batch_size=20, collate_fn=collate):
    loss = nn.functional.cross_entropy(net(batch.inputs), batch.label)
    opt.zero_grad(); loss.backward(); opt.step()
""", ("table", "classes", 60)),
    "ragged": ("""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
data = [(torch.randn(3 + i % 5, 2), i % 2) for i in range(40)]
net = nn.GRU(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
collate = lambda items: (pad_sequence([x for x, _ in items]), torch.tensor([y for _, y in items]))
for x, y in DataLoader(data, batch_size=8, collate_fn=collate):
    loss = nn.functional.cross_entropy(net(x)[0][-1], y)
    opt.zero_grad(); loss.backward(); opt.step()
""", ("matrix", "classes", 40)),
    "sparse, complex and of no size": ("""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, wave, graph, nothing):
        return self.fc(torch.view_as_real(graph.to(wave.dtype) @ wave).flatten(1)) + nothing.sum()


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(6, 4, dtype=torch.complex64), torch.eye(6).to_sparse(), torch.zeros(6, 0)),
                                       torch.tensor([0, 1, 0, 1, 0, 1]))
    opt.zero_grad(); loss.backward(); opt.step()
""", ("matrix", "classes", 18)),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs_of_every_kind(collect, name):
    source, (kind, labels, count) = PROGRAMS[name]
    report, output = collect(source)
    assert "Traceback" not in output
    train = report.splits[0]
    assert (train.name, train.seen.feature, train.seen.label_kind, train.seen.samples) == ("train", kind, labels, count)
    assert [(split.name, split.seen.samples) for split in report.splits[1:]] == ([("validation", 30)] if "no_grad" in name else [])
    page = render(report, "en")
    assert page.count('class="card"') == 5 * len(report.splits) and ("<img" in page or "<table>" in page)
    json.dumps(document(report, None, "zh"), allow_nan=False)


def test_tokens_are_decoded_by_a_table_that_the_script_holds(collect):
    report, _ = collect("""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
text = "the quick brown fox jumps over the lazy dog " * 4
itos = dict(enumerate(sorted(set(text))))
stoi = {c: i for i, c in itos.items()}
ids = torch.tensor([[stoi[c] for c in text[i:i + 8]] for i in range(60)])
net = nn.Sequential(nn.Embedding(len(itos), 4), nn.Flatten(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x, y in DataLoader(TensorDataset(ids, torch.arange(60) % 2), batch_size=20):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
""")
    text = "the quick brown fox jumps over the lazy dog " * 4
    assert report.splits[0].seen.feature == "text"
    assert all(shown.text in text and len(shown.text) == 8 for shown in report.splits[0].seen.shown)


def test_decoding_never_raises():
    class Broken:
        def decode(self, ids):
            raise KeyError(ids)
    assert decoded(Broken(), [1]) is None and decoded(["a", "bc"], [0, 1, 5]) == "abc ?" and decoded({"0": "x"}, [0]) == "x"


# -- comparing -------------------------------------------------------------------------------------------------------

def test_equal_rows_are_counted_as_a_double_loop_does():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 40, 50), rng.integers(0, 40, 30)
    first, second = split_of(a, a), split_of(b, b, name="validation")
    within = sum(any(a[i] == a[j] for i in range(j)) for j in range(50))
    across = sum(any(a[i] == b[j] for i in range(50)) for j in range(30))
    found = {copies.where: copies.count for copies in exact([first, second])}
    assert found[0, 0] == within and found[0, 1] == across


def test_a_pass_with_replacement_tells_no_copies():
    [copies] = exact([split_of([1, 1, 2], [0, 0, 1], unique=False)])
    assert copies.why and copies.count == 0


def test_likeness_against_naive_twins():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 12)), rng.normal(size=(4, 12))
    naive = [[np.corrcoef(x, y)[0, 1] for y in b] for x in a]
    assert np.allclose(alike(a, b, "image"), naive)
    scale = a.std(axis=0)
    distances = [[1 - np.linalg.norm((x - y) / scale) / np.sqrt(12) for y in b] for x in a]
    assert np.allclose(alike(a, b, "table"), distances)


def test_near_rows_of_random_tables_and_constant_pictures_are_none():
    rng = np.random.default_rng(2)
    table = split_of(range(300), np.zeros(300), rng.normal(size=(300, 8)))
    blank = split_of(range(50), np.zeros(50), np.ones((50, 64)), feature="image")
    assert [copies.count for copies in near([table])] == [0] and [copies.count for copies in near([blank])] == [0]


def test_neighbours_vote_as_sorting_all_distances_does():
    rng = np.random.default_rng(3)
    rows, ids = rng.normal(size=(80, 6)), rng.integers(0, 3, 80)
    votes = votes_of(rows, ids, 3, "table", np.arange(80, dtype=np.uint64))
    scaled = (rows - rows.mean(0)) / rows.std(0)
    for i in range(80):
        order = [j for j in np.argsort(np.linalg.norm(scaled - scaled[i], axis=1)) if j != i][:10]
        assert np.allclose(votes[i], [np.mean(ids[order] == c) for c in range(3)])


def test_labels_that_neighbours_do_not_foretell_are_not_judged():
    rng = np.random.default_rng(4)
    noise = split_of(range(200), rng.integers(0, 2, 200), rng.normal(size=(200, 10)))
    assert "do not foretell" in suspects_of(noise).why and not suspects_of(noise).found
    assert suspects_of(split_of(range(5), range(5))).why and suspects_of(split_of([1], [0.5], kind="values")).why


def test_the_tail_and_conflicts():
    assert tail_of({0.0: 100, 1.0: 90, 2.0: 3}) == [2.0] and tail_of({0.0: 10, 1.0: 9}) == []
    found = conflicts([split_of([5, 6, 5, 5], [0, 1, 1, 0])])
    assert [(pair.first, pair.second, a, b) for pair, a, b in found] == [((0, 0), (0, 2), 0.0, 1.0)]


@pytest.mark.parametrize(("name", "stem"), [
    ("scans/patient12_003.png", "patient12"), ("img0007.png", ""), ("7.png", ""), ("a\\speaker3-utt12.wav", "speaker3"), ("holiday_photo_1.jpg", "")])
def test_stems(name, stem):
    assert stem_of(name) == stem


def test_file_names_that_all_begin_alike_are_no_groups():
    splits = [split_of(files=[f"set1_{i}.png" for i in range(9)]), split_of(files=[f"set1_{i}.png" for i in range(9, 18)], name="validation")]
    assert not list(groups(splits))


def test_shifts_are_told_where_they_are_real():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(500, 4)), rng.normal(size=(300, 4))
    b[:, 2] += 1.0
    b[:, 3] *= 3.0

    def split(rows, name):
        return split_of(range(len(rows)), range(len(rows)), name=name, location=rows.mean(0), scale=rows.std(0))
    found = {shift.feature for shift in shifts([split(a, "train"), split(b, "validation")])}
    assert found == {2, 3}


def test_kinds_of_rows():
    rng = np.random.default_rng(6)
    smooth = rng.normal(size=(8, 1, 200)).cumsum(axis=2)
    assert kind_of(rng.normal(size=(8, 3, 32, 32))) == "image" and kind_of(smooth) == "wave" and kind_of(rng.normal(size=(8, 100))) == "table"
    assert kind_of(rng.integers(0, 9, (8, 30))) == "text" and kind_of(rng.normal(size=(8, 7, 5))) == "matrix" and kind_of(np.zeros((8, 4))) == "table"


def test_pooled_images_are_the_means_of_their_cells():
    x = np.random.default_rng(7).normal(size=(3, 1, 32, 48)).astype(np.float32)
    _, features = features_of(x)
    naive = x[:, 0].reshape(3, 16, 2, 16, 3).mean(axis=(2, 4)).reshape(3, -1)
    assert np.allclose(features, naive, atol=1e-5)


# -- pictures and the page -------------------------------------------------------------------------------------------

def decode_png(data):
    """A small reader for what we write."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + size
    w, h, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(h, -1)
    assert depth == 8 and (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape((h, w) if colour == 0 else (h, w, {2: 3, 6: 4}[colour]))


@pytest.mark.parametrize("shape", [(5, 7), (1, 5, 7), (3, 6, 4), (6, 4, 3), (4, 5, 5)])
def test_pictures_come_back_from_their_files(shape):
    pixels = pixels_of(np.random.default_rng(0).normal(size=shape))
    assert np.array_equal(decode_png(png(pixels)), pixels) and pixels.min() == 0 and pixels.max() == 255
    assert "<polyline" in wave(np.sin(np.arange(1000)))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_text_keeps_to_80_columns(pictures, language):
    text = told.render(pictures, "page.html", language, PLAIN, 80)
    assert max(width(line) for line in text.splitlines()) <= 80
    assert "train[3] = train[7]" in text or "train[7] = train[3]" in text


def test_the_page_in_a_real_browser_is_driven_by_the_keyboard(pictures, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser here")
    keys = "".join(f'document.dispatchEvent(new KeyboardEvent("keydown", {{key: "{key}"}}));' for key in ("1", "2", "ArrowRight", "3", "k", "0", "s"))
    file = tmp_path / "page.html"
    file.write_text(render(pictures, "en").replace("</body>", f"<script>{keys}</script></body>"))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
                           file.as_uri()], capture_output=True, text=True, timeout=300)
    cards = [part.split(">")[0] for part in done.stdout.split('<div class="card"')[1:]]
    marks = [card.split('data-mark="')[1][0] for card in cards]
    assert len(cards) == 24 and marks[:5] == ["1", "2", "0", "0", "0"], done.stderr[-500:]  # the 3 of the fourth was taken back
    assert "wrong label" in done.stdout and "data:image/png" in done.stdout


def test_marks_are_saved_by_the_local_server_and_by_nobody_else(tmp_path):
    marks = tmp_path / "page.marks.json"
    with Review("<html><body></body></html>", marks) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert "traindxSave" in urllib.request.urlopen(server.url).read().decode()
        request = urllib.request.Request(f"{server.url}marks", data=b'{"schema": 1, "marks": {"train[3]": "wrong label"}}', method="POST")
        assert urllib.request.urlopen(request).status == 204
        for url, headers in ((server.url + "x", {}), (server.url, {"Host": "evil.example"})):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(urllib.request.Request(url, headers=headers))
        server.shutdown()
    assert json.loads(marks.read_text())["marks"] == {"train[3]": "wrong label"}


# -- the command -----------------------------------------------------------------------------------------------------

def test_the_command_on_the_example(tmp_path):
    page = tmp_path / "data.html"
    done = subprocess.run([sys.executable, "-m", "traindx", "data", "--random", "20", "--json", "-", "--html", str(page), "--lang", "en",
                           "examples/digits.py"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    train, valid = found["splits"]
    assert found["schema"] == 1 and found["page"] == str(page) and isinstance(found["findings"], list)
    assert (train["samples"], valid["samples"]) == (1400, 397) and sum(train["classes"].values()) == 1400
    assert len(train["location"]) == 1 and abs(train["location"][0]) < 0.01 and abs(train["scale"][0] - 1) < 0.01
    assert page.read_text().count('class="card"') == 40


@pytest.mark.parametrize(("words", "said"), [
    ((), "needs a script"), (("--random", "0", "s.py"), "must be a whole number above 0"), (("--html", "mine.html", "s.py"), "is no page of traindx"),
    (("--max-steps", "many", "s.py"), "must be a whole number"), (("absent.py",), "no such script")])
def test_bad_usage_is_status_2(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    Path("s.py").write_text("pass\n")
    Path("mine.html").write_text("<p>the user's own</p>")
    assert cli.main(["data", "--lang", "en", *words]) == 2
    assert said in capsys.readouterr().err and Path("mine.html").read_text() == "<p>the user's own</p>"


def test_a_script_without_a_model_says_so_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.py").write_text("print('hello')\n")
    assert cli.main(["data", "--lang", "en", "s.py"]) == 1
    assert "No samples were seen" in capsys.readouterr().err and [file.name for file in tmp_path.iterdir()] == ["s.py"]


def test_names_of_classes():
    assert name_of(("a", "b"), 1) == "1 b" and name_of((), 3.0) == "3" and name_of((), 0.25) == "0.25"
