"""Is a resumed training the unbroken one? Twins of one program, each of which forgets to restore one part."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from traindx.core.exams import ExamReport
from traindx.core.trials import Budget, Program, Step, Trace
from traindx.engine.local import LocalEngine
from traindx.experiments import resume
from traindx.experiments.bench import Bench
from traindx.reporters import exam_html, exam_json, exam_terminal
from traindx.reporters import json as json_report

SCHEMA = json.loads(Path(json_report.__file__).with_name("exam.schema.json").read_text())
PROGRAM = '''
import argparse, os, random, sys
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--forget", default="")
parser.add_argument("--save-every", type=int, default=0)
parser.add_argument("--resume", metavar="FILE")
args = parser.parse_args()
forget = args.forget.split(",")

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 6), torch.randint(3, (64,)))
loader = torch.utils.data.DataLoader(data, 16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=5)
first = 0
if args.resume:
    state = torch.load(args.resume, weights_only=True)
    if "model" not in forget: model.load_state_dict(state["model"])
    if "optimizer" not in forget: optimizer.load_state_dict(state["optimizer"])
    if "scheduler" not in forget: scheduler.load_state_dict(state["scheduler"])
    if "scaler" not in forget: scaler.load_state_dict(state["scaler"])
    if "rng" not in forget: torch.set_rng_state(state["rng"])
    if "counter" not in forget: first = state["epoch"] + 1


def save(epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                "scaler": scaler.state_dict(), "epoch": epoch, "rng": torch.get_rng_state()}, "last.tmp")
    os.replace("last.tmp", "last.pt")


for epoch in range(first, args.epochs):
    for number, (x, y) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if args.save_every and number % args.save_every == 0:
            save(epoch - 1)
    scheduler.step()
    if not args.save_every:
        save(epoch)
'''


@pytest.fixture(scope="module")
def engine():
    with LocalEngine(jobs=1) as running:
        yield running


def bench_of(engine, folder, source=PROGRAM, *args):
    (folder / "train.py").write_text(source)
    return Bench(engine, Program("train.py", None, args, str(folder)), Budget(seconds=120))


def tree(folder):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def proved(engine, folder, *args, source=PROGRAM, words=None, repeatable=True):
    bench = bench_of(engine, folder, source, *args)
    before = tree(folder)
    result = resume.examine(bench, repeatable, words)
    assert tree(folder) == before, "the user's files were touched"
    return result


@pytest.fixture(scope="module")
def unbroken(engine, tmp_path_factory):
    """A bench on which the unbroken run of the program is made only once."""
    return bench_of(engine, tmp_path_factory.mktemp("unbroken"))


def test_a_resume_that_restores_everything_passes(engine, tmp_path):
    result = proved(engine, tmp_path)
    assert (result.verdict, result.not_restored) == ("passed", ())
    assert "after step 8 and resumed with --resume last.pt: the next 8 steps" in result.why.en
    whole, again = result.curves["unbroken"], result.curves["resumed"]
    assert whole[8:] == again and len(whole) == 16, "every step, to the last bit"


@pytest.mark.parametrize(("forgotten", "says"), [
    ("model", "as at the very beginning"), ("optimizer", "start from nothing (saved, and not loaded)"), ("scheduler", "last_epoch is 0"),
    ("scaler", "scale is 4"), ("rng", "generators: torch: another state (saved, and not loaded)"), ("counter", "it trains > 8 steps more")])
def test_each_part_that_is_forgotten_is_named(unbroken, forgotten, says):
    result = resume.examine(unbroken, True, f"--resume {{checkpoint}} --forget {forgotten}")
    assert (result.verdict, result.not_restored) == ("failed", (forgotten,)), result.why.en
    said = exam_terminal.render(ExamReport("train.py", steps=[result]), "en", columns=400)
    assert says in said


def test_parts_that_are_forgotten_together_are_all_named(unbroken):
    result = resume.examine(unbroken, True, "--resume {checkpoint} --forget optimizer,scheduler,rng")
    assert result.not_restored == ("optimizer", "scheduler", "rng")


def test_a_checkpoint_within_an_epoch_loses_the_place_in_the_data(engine, tmp_path):
    result = proved(engine, tmp_path, "--save-every", "3")
    assert (result.verdict, result.not_restored) == ("failed", ("sampler",)), result.why.en
    evidence, = result.evidence
    assert (evidence.value.en, evidence.expected.en) == ("batch 1 of its epoch", "batch 4 of its epoch")


def test_an_optimizer_that_was_never_saved_is_said_so(engine, tmp_path):
    source = PROGRAM.replace('"optimizer": optimizer.state_dict(), ', "")
    result = proved(engine, tmp_path, "--forget", "optimizer", source=source)
    assert result.not_restored == ("optimizer",) and "(never saved)" in result.evidence[0].value.en


BY_ITSELF = PROGRAM.replace("if args.resume:", "args.resume = 'last.pt' if os.path.exists('last.pt') else None\nif args.resume:").replace(
    'parser.add_argument("--resume", metavar="FILE")\n', "")


def test_a_program_that_looks_for_its_checkpoint_by_itself(engine, tmp_path):
    result = proved(engine, tmp_path, source=BY_ITSELF)
    assert result.verdict == "passed" and "the same command" in result.why.en


def test_a_checkpoint_of_the_users_that_lies_there_is_put_aside(engine, tmp_path):
    (tmp_path / "train.py").write_text(BY_ITSELF)
    subprocess.run([sys.executable, "train.py", "--epochs", "1"], cwd=tmp_path, check=True)
    result = proved(engine, tmp_path, source=BY_ITSELF)
    assert result.verdict == "passed" and len(result.curves["unbroken"]) == 16


NO_WAY = PROGRAM.replace('"--resume", metavar="FILE"', '"--go-on-with", dest="resume_later", type=int').replace("if args.resume:", "if False:")


TRAINER = '''
import argparse, os
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from torch import nn
from transformers import Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--resume_from_checkpoint")
args = parser.parse_args()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))

    def forward(self, x=None, labels=None):
        logits = self.body(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


rows = [{"x": torch.randn(6), "labels": i % 3} for i in range(32)]
options = dict(per_device_train_batch_size=8, num_train_epochs=3, save_steps=5, report_to=[], use_cpu=True, disable_tqdm=True)
Trainer(Net(), TrainingArguments("out", **options), train_dataset=rows).train(resume_from_checkpoint=args.resume_from_checkpoint)
'''
LIGHTNING = '''
import argparse, torch, lightning as L
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--ckpt_path")
args = parser.parse_args()
L.seed_everything(0)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))

    def training_step(self, batch, number):
        x, y = batch
        return nn.functional.cross_entropy(self.body(x), y)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


data = torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(3, (32,)))
trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir="out")
trainer.fit(Net(), torch.utils.data.DataLoader(data, 8), ckpt_path=args.ckpt_path)
'''


@pytest.mark.parametrize(("source", "how"), [(TRAINER, "--resume_from_checkpoint checkpoint-5"), (LIGHTNING, "--ckpt_path epoch=0-step=4.ckpt")])
def test_frameworks_that_keep_their_own_checkpoints(engine, tmp_path, source, how):
    """A folder of files of which none is whole; a file that is written in memory first."""
    result = proved(engine, tmp_path, source=source)
    assert result.verdict == "passed" and how in result.why.en, result.why.en


def test_where_no_way_is_found_it_is_asked_for(engine, tmp_path):
    result = proved(engine, tmp_path, source=NO_WAY)
    assert result.verdict == "not-checked" and "no option such as --resume" in result.why.en
    assert "--resume-args '--resume {checkpoint}'" in result.next.en


def test_the_users_own_words_are_taken(engine, tmp_path):
    source = PROGRAM.replace('"--resume"', '"--weights", dest="resume"')
    bench = bench_of(engine, tmp_path, source.replace('dest="resume"', 'dest="first_weights"').replace("args.resume", "args.first_weights"))
    assert resume.examine(bench, True).verdict == "not-checked"
    assert resume.examine(bench, True, "--weights {checkpoint}").verdict == "passed"
    crashed = resume.examine(bench, True, "--weights nothing.pt")
    assert crashed.verdict == "failed" and "nothing.pt" in crashed.why.en


@pytest.mark.parametrize(("change", "says"), [
    (("    if not args.save_every:\n        save(epoch)", ""), "no checkpoint was written"),
    (("    if not args.save_every:\n        save(epoch)", "if not args.save_every:\n    save(epoch)"), "only at the end")])
def test_programs_without_a_checkpoint_on_the_way(engine, tmp_path, change, says):
    result = proved(engine, tmp_path, source=PROGRAM.replace(*change))
    assert result.verdict == "not-checked" and says in result.why.en


def test_a_program_that_does_not_repeat_itself_is_not_judged(engine, tmp_path):
    result = proved(engine, tmp_path, repeatable=False)
    assert result.verdict == "not-checked" and "differ already" in result.why.en


def option(dest, takes="value", *names):
    return {"names": list(names) or [f"--{dest.replace('_', '-')}"], "dest": dest, "takes": takes}


@pytest.mark.parametrize(("options", "args"), [
    ([option("epochs"), option("resume", "flag")], ("--resume",)),
    ([option("resume_from_checkpoint")], ("--resume-from-checkpoint", "{checkpoint}")),
    ([option("ckpt_path"), option("resume", "value", "-r", "--resume")], ("--resume", "{checkpoint}")),
    ([option("resume", "truth")], ("--resume", "true")),
    ([option("resume", "flag", "--resume", "--no-resume")], ("--resume",)),
    ([option("no_resume", "flag"), option("resume_epoch"), option("resume", "number"), option("checkpoint_dir")], ())])
def test_the_option_that_resumes(options, args):
    assert resume.way_of(options).args == args


def test_what_differs_in_rounding_only_passes_when_all_is_restored():
    point = {"step": 1, "models": {"Net": "a"}, "optimizers": [{"class": "Adam", "moments": "b", "lr": [0.1]}], "rng": {"torch": "c"}}
    whole = Trace([Step(1, 2.0), Step(2, 1.0), Step(3, 0.5)], facts={"resume_point": {"points": [{"step": 0, "models": {"Net": "z"}}, point]}})
    again = Trace([Step(1, 1.0), Step(2, 0.5 + 1e-8)], facts={"resume_point": {"points": [{**point, "step": 0}]}, "interrupted": {"ended": "steps"}})
    result = resume.judge(whole, again, 1, resume.Way(("--resume",)))
    assert result.verdict == "passed" and "up to rounding" in result.why.en
    again.steps[1] = Step(2, 0.6)
    result = resume.judge(whole, again, 1, resume.Way(("--resume",)))
    assert result.verdict == "failed" and result.not_restored == () and "something else" in result.why.en


def test_the_command(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "traindx", "exam", "--step", "resume", "--json", "e.json", "--html", "e.html", "train.py", "--forget", "rng"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "e.json").read_text())
    jsonschema.validate(found, SCHEMA)
    step, = found["steps"]
    assert (step["step"], step["name"], step["verdict"], step["not_restored"]) == (7, "resume", "failed", ["rng"])
    assert "7 resume: failed" in " ".join(done.stdout.split()) and "resume" in (tmp_path / "e.html").read_text()


def test_both_languages(tmp_path):
    report = ExamReport("train.py", steps=[resume.judge(Trace(), Trace(facts={"interrupted": {"ended": "raised", "error": "x"}}), 3, resume.Way(()))])
    assert "断点续训" in exam_terminal.render(report, "zh") and exam_json.document(report, "zh")["steps"][0]["verdict"] == "not-checked"
    assert "断点续训" in exam_html.render(report, "zh")
