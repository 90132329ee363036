"""``traindx memory`` as it is typed: figures, the contract of its JSON, both languages at 80 columns, bad input."""
from __future__ import annotations

import hashlib
import json

import pytest

from traindx.cli import main
from traindx.core.memory import CATEGORIES
from traindx.reporters.layout import width

CONTRACT = {"source", "peak_bytes", "phase", "where", "categories", "measured_peak_bytes", "fits", "remedies", "not_modelled"}
SCRIPT = """
import sys, torch
from torch import nn
open("written.txt", "w").write("by the script")
net = nn.Sequential(*[nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)) for _ in range(3)])
optimizer = torch.optim.AdamW(net.parameters())
for step in range(10):
    loss = net(torch.randn(64, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
torch.save(net.state_dict(), "net.pt")
"""


def asked(capsys, *words):
    status = main(["memory", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def account(capsys, *words):
    status, out, _ = asked(capsys, "--json", "-", *words)
    assert status == 0
    return json.loads(out)


@pytest.mark.parametrize(("words", "peak"), [
    (("--params", "7e9"), 112e9), (("--params", "7B"), 112e9), (("--params", "1.5e9"), 24e9), (("--params", "7e9", "--precision", "fp32"), 112e9),
    (("--params", "7e9", "--inference"), 14e9), (("--params", "7e9", "--sharding", "zero3", "--ranks", "8"), 14e9),
    (("--params", "7e9", "--optimizer", "adamw-foreach"), 140e9), (("--params", "7e9", "--optimizer", "sgd", "--precision", "fp32"), 56e9)])
def test_the_figures(capsys, words, peak):
    found = account(capsys, *words)
    assert found["peak_bytes"] == peak and found["source"] == "formula" and found.keys() >= CONTRACT and found["schema"] == 1
    assert list(found["categories"]) == list(CATEGORIES)
    assert all(line["formula"] and line["origin"] in ("formula", "rule of thumb") for line in found["bill"])


def test_what_fits_and_what_would_help(capsys):
    sizes = ("--layers", "24", "--hidden", "2048", "--heads", "16", "--vocab", "50257", "--seq", "2048", "--batch", "8")
    found = account(capsys, *sizes, "--gpu", "a100-80", "--gpu", "24GB")
    large, small = found["fits"]
    assert large["fits"] and large["largest_batch"] >= 8 and not small["fits"] and small["largest_batch"] < large["largest_batch"]
    again = account(capsys, *sizes[:-1], str(large["largest_batch"]), "--gpu", "a100-80")
    assert again["fits"][0]["fits"]
    more = account(capsys, *sizes[:-1], str(large["largest_batch"] + 1), "--gpu", "a100-80")
    assert not more["fits"][0]["fits"]
    names = [remedy["name"] for remedy in found["remedies"]]
    assert names == ["halve-and-accumulate", "checkpointing", "8-bit", "lora", "qlora", "sharding"]
    assert all(remedy["peak_bytes"] < found["peak_bytes"] for remedy in found["remedies"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_eighty_columns_in_both_languages(capsys, language):
    _, out, _ = asked(capsys, "--layers", "24", "--hidden", "2048", "--vocab", "50257", "--seq", "2048", "--batch", "8", "--gpu", "a100-80",
                      "--lang", language)
    assert max(map(width, out.splitlines())) <= 80
    assert ("优化器" in out) == (language == "zh") and ("optimizer" in out) == (language == "en")


def test_a_page_opens_from_disk(capsys, tmp_path):
    page = tmp_path / "memory.html"
    assert asked(capsys, "--params", "7e9", "--gpu", "80GB", "--html", str(page))[0] == 0
    text = page.read_text()
    assert "112 GB" in text and "账单" in text and "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(("words", "message"), [
    ((), "needs a script"), (("--params", "many"), "7e9"), (("--params", "-1"), "above 0"), (("--params", "1e99"), "beyond anything"),
    (("--params", "nan"), "above 0"), (("--params", "7e9", "--gpu", "a1000"), "Did you mean"), (("--layers", "4"), "needs --hidden"),
    (("--hidden", "64", "--layers", "0"), "whole number"), (("--layers", "2", "--hidden", "65", "--heads", "8"), "cannot be divided"),
    (("--layers", "2", "--hidden", "64", "--heads", "8", "--kv-heads", "3"), "cannot be grouped"),
    (("--params", "7e9", "--optimizer", "adamx"), "adamw"), (("--params", "7e9", "--precision", "fp8"), "fp32"),
    (("--params", "7e9", "--sharding", "zero3"), "needs --ranks"), (("--params", "7e9", "--lora", "8"), "needs --config"),
    (("--params", "7e9", "--batch", "8"), "needs --seq"), (("--config", "none.json"), "cannot be read"), (("none.py",), "no such script"),
    (("--params", "7e9", "--json", "/proc/none/x.json"), "cannot be written"), (("--layers", "999999999", "--hidden", "64"), "beyond anything")])
def test_bad_input_is_said_with_status_2(capsys, words, message):
    status, out, err = asked(capsys, *words, "--lang", "en") if not words or not words[0].endswith(".py") else asked(capsys, "--lang", "en", *words)
    assert status == 2 and message in err and out == "" and "Traceback" not in err


def test_a_config_of_an_unknown_architecture_is_counted_and_said(capsys, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "newthing", "d_model": 512, "n_layers": 6, "vocab_size": 1000}))
    found = account(capsys, "--config", str(file), "--lang", "en")
    assert any("'newthing' is not known" in remark for remark in found["remarks"])


# -- the program itself -------------------------------------------------------------------------------------------------

def tree_of(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_script_is_traced_and_nothing_of_it_is_written(capsys, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    before = tree_of(tmp_path)
    found = account(capsys, "--lang", "en", "--gpu", "24GB", "--measure", "train.py")
    assert tree_of(tmp_path) == before
    assert found["source"] == "traced" and found["batch"] == 64 and found.keys() >= CONTRACT
    assert found["where"]["file"] == "train.py" and found["phase"] in ("forward", "backward", "step")
    assert sum(found["categories"].values()) == found["peak_bytes"]
    assert found["fits"][0]["fits"] and found["fits"][0]["largest_batch"] > 10_000
    remedies = {remedy["name"]: remedy for remedy in found["remedies"]}
    assert remedies["8-bit"]["peak_bytes"] < found["peak_bytes"] and remedies["checkpointing"]["peak_bytes"] is not None
    assert found["measured_peak_bytes"] == pytest.approx(found["peak_bytes"], rel=0.3)  # foreach is the GPU's, the CPU steps one by one


def test_the_peak_in_step_is_said_and_the_measured_peak_agrees(capsys, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT.replace("64, 64)).square", "2, 64)).square").replace("AdamW(net.parameters())", "AdamW(net.parameters(), foreach=True)"))
    monkeypatch.chdir(tmp_path)
    found = account(capsys, "--lang", "en", "--measure", "train.py")
    assert found["phase"] == "step" and any("Checkpointing will not help" in remark for remark in found["remarks"])
    assert found["measured_peak_bytes"] == pytest.approx(found["peak_bytes"], rel=0.01)


@pytest.mark.parametrize(("script", "message"), [
    ("import torch\nnet = torch.nn.Linear(100, 100)\nprint(net(torch.zeros(1, 100)))\n", "came to its end after 0 optimizer steps"),
    ("import torch\nnet = torch.nn.Linear(100, 100)\nnet(torch.zeros(1, 100))\nraise ValueError('oh no')\n", "ValueError: oh no at train.py:4"),
    ("import torch\nif not torch.cuda.is_available():\n    raise SystemExit('needs CUDA')\n", "asks for a GPU"),
    ("def f(:\n", "SyntaxError")])
def test_a_script_that_cannot_be_traced_says_why_and_what_is_known(capsys, tmp_path, monkeypatch, script, message):
    (tmp_path / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    status, _, err = asked(capsys, "--lang", "en", "train.py")
    assert status == 2 and message in err and "traindx memory --params N" in err
    assert "Linear" not in script or "10,100 parameters" in err


def test_formula_options_are_not_for_a_script(capsys, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    status, _, err = asked(capsys, "--lang", "en", "--params", "7e9", str(script))
    assert status == 2 and "--params is for the formula" in err
