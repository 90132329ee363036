"""Public programs that come with installed packages, watched unmodified: ``python benchmarks/public.py [NAME...]`` writes public.md.

A program is either a script inside a package, run as it is, or a few lines that hand a package's own model (and, where it has one, its own data
module) to its own trainer. Only data that would have to be downloaded are replaced, by random numbers of the same shapes.
"""
from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
QUIET = "enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False, logger=False, accelerator='cpu'"
LIGHTNING = "import torch, lightning as L\nfrom lightning.pytorch.demos import boring_classes as demos\nL.seed_everything(1)\n"
WORDS = """
from torch.utils.data import DataLoader, Dataset
words = (torch.arange(1200) * 7 % 53 + torch.randint(0, 3, (1200,))) % 60

class Words(Dataset):
    def __len__(self):
        return len(words) // 30 - 1
    def __getitem__(self, i):
        return words[30 * i:30 * i + 30], words[30 * i + 1:30 * i + 31]
"""
HF = """
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed
set_seed(1)

class Rows(Dataset):
    def __init__(self, seed, count):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, 60, (count, 16), generator=g)
        self.labels = (self.ids[:, 0] > 30).long()
    def __len__(self):
        return len(self.ids)
    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": LABELS}

def go(model):
    options = TrainingArguments(output_dir="out", max_steps=24, per_device_train_batch_size=16, report_to=[], use_cpu=True, save_strategy="no",
                                eval_strategy="steps", eval_steps=12, disable_tqdm=True, learning_rate=1e-3)
    Trainer(model, options, train_dataset=Rows(0, 256), eval_dataset=Rows(1, 64)).train()
"""


@dataclass(frozen=True)
class Program:
    """``path`` is a script in a package; ``code`` starts a package's own model. ``why`` explains findings that are true."""

    name: str
    package: str
    path: str = ""
    code: str = ""
    why: str = ""


def fit(model: str, arguments: str = "") -> str:
    return f"{LIGHTNING}L.Trainer(max_epochs=2, limit_train_batches=40, limit_val_batches=10, {QUIET}).fit({model}{arguments})\n"


def hf(kind: str, config: str, labels: str = "self.labels[i]") -> str:
    return (HF.replace("LABELS", labels) + f"from transformers import {kind}, {config.partition('(')[0]}\ngo({kind}({config}))\n")


SIZES = "vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64"
OVERSHOOTS = ("true: with one sample of 32 inputs of variance 1 a step, lr 0.1 times the curvature (about 32) is 3.2, more than the 2 that a "
              "quadratic bears; the demo only has to run")
COMPARED = "true: some of its tests only compare the gradients of models that no optimizer holds; these are not meant to learn"
PROGRAMS = (
    Program("lightning BoringModel", "lightning.pytorch.demos.boring_classes", code=fit("demos.BoringModel()"), why=OVERSHOOTS),
    Program("lightning ManualOptimBoringModel", "lightning.pytorch.demos.boring_classes", code=fit("demos.ManualOptimBoringModel()"),
            why=OVERSHOOTS),
    Program("lightning BoringDataModule", "lightning.pytorch.demos.boring_classes",
            code=fit("demos.BoringModel()", ", datamodule=demos.BoringDataModule()"), why=OVERSHOOTS),
    Program("lightning DemoModel", "lightning.pytorch.demos.boring_classes",
            code=fit("demos.DemoModel()", ", torch.utils.data.DataLoader(demos.RandomDataset(32, 640), 16)")),
    Program("lightning LightningTransformer", "lightning.pytorch.demos.transformer", code=(
        LIGHTNING + WORDS + "from lightning.pytorch.demos.transformer import LightningTransformer\n"
        "class Model(LightningTransformer):\n    def prepare_data(self):\n        pass\n    def train_dataloader(self):\n"
        f"        return DataLoader(Words())\nL.Trainer(max_epochs=1, limit_train_batches=30, {QUIET}).fit(Model(60))\n")),
    Program("lightning LightningLSTM", "lightning.pytorch.demos.lstm", code=(
        LIGHTNING + WORDS + "from lightning.pytorch.demos.lstm import LightningLSTM, SequenceSampler\n"
        "class Model(LightningLSTM):\n    def prepare_data(self):\n        pass\n    def train_dataloader(self):\n"
        "        return DataLoader(Words(), batch_sampler=SequenceSampler(Words(), batch_size=4))\n"
        f"L.Trainer(max_epochs=3, gradient_clip_val=0.25, {QUIET}).fit(Model(60))\n")),
    Program("accelerate test_sync", "accelerate.test_utils.scripts.test_sync", path="accelerate/test_utils/scripts/test_sync.py", why=COMPARED),
    Program("accelerate test_script", "accelerate.test_utils.scripts.test_script", path="accelerate/test_utils/scripts/test_script.py"),
    Program("transformers Trainer, BERT classifier", "transformers",
            code=hf("BertForSequenceClassification", f"BertConfig({SIZES}, num_labels=2)")),
    Program("transformers Trainer, GPT-2", "transformers", code=hf(
        "GPT2LMHeadModel", "GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=2, n_positions=32)", "self.ids[i]")),
    Program("transformers Trainer, DistilBERT tagger", "transformers", code=hf(
        "DistilBertForTokenClassification", "DistilBertConfig(vocab_size=60, dim=32, n_layers=2, n_heads=2, hidden_dim=64, num_labels=2)",
        "(self.ids[i] > 30).long()")),
    Program("transformers Trainer, T5", "transformers", code=hf(
        "T5ForConditionalGeneration",
        "T5Config(vocab_size=60, d_model=32, d_ff=64, num_layers=1, num_heads=2, d_kv=16, decoder_start_token_id=0)", "self.ids[i][:8]")),
)


def script_of(program: Program, folder: Path) -> Path:
    if program.path:
        package = importlib.util.find_spec(program.path.partition("/")[0])
        assert package is not None and package.origin is not None
        return Path(package.origin).parent.parent / program.path
    script = folder / "start.py"
    script.write_text(program.code)
    return script


def watched(program: Program) -> tuple[str, list[str], float]:
    """``(outcome, lines on errors and warnings, seconds)`` of one program under ``traindx run``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "report.json"
        command = [sys.executable, "-m", "traindx", "run", "--json", str(out), str(script_of(program, folder))]
        began = time.perf_counter()
        done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=900)
        seconds = time.perf_counter() - began
        if not out.exists():
            return f"no report: {done.stderr[-300:]}", [], seconds
        report = json.loads(out.read_text())
        loud = [f"`{finding['rule']}` ({finding['level']}): {finding['cause']}" for finding in report["findings"]
                if finding["level"] != "note" and not finding.get("explained_by")]
        ended = "finished" if "Traceback" not in done.stderr else "raised: " + done.stderr.strip().splitlines()[-1][:120]
        return ended, loud, seconds


def row(program: Program) -> str:
    outcome, loud, seconds = watched(program)
    said = "; ".join(loud) or "none"
    print(f"{program.name}: {outcome}, {said}, {seconds:.0f} s", flush=True)
    explained = program.why if loud else "-"
    return f"| {program.name} | `{program.package}` | {outcome} | {said} | {explained or 'not yet explained'} |"


def main(names: list[str]) -> None:
    chosen = [program for program in PROGRAMS if not names or any(name in program.name for name in names)]
    rows = [row(program) for program in chosen]
    if not names:
        text = (HERE / "public.md").read_text() if (HERE / "public.md").exists() else ""
        head = text.partition("| program |")[0] or HEAD
        (HERE / "public.md").write_text(head + COLUMNS + "\n".join(rows) + "\n")


HEAD = """# Public programs, unmodified

`python benchmarks/public.py` runs these under `traindx run` on the CPU and writes the table. Each is a script that comes with an installed
package, or a package's own model in its own trainer; only data that would have to be downloaded are replaced by random numbers.
An error or a warning is either true, and explained in the last column, or a defect of ours.

"""
COLUMNS = "| program | comes with | outcome | errors and warnings | explained |\n|---|---|---|---|---|\n"

if __name__ == "__main__":
    main(sys.argv[1:])
