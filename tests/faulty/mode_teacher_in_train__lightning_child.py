"""Distil a trained digit reader into a small one, in Lightning."""
# needs: lightning
# twin: self.train()  # validation => self.student.train()  # validation
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def digits():
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32) / 8 - 0.6
    y = torch.tensor(y)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return (x[order[:1300]], y[order[:1300]]), (x[order[1300:]], y[order[1300:]])


def wide():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, 10))


class Plain(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = wide()

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


class Distil(L.LightningModule):
    def __init__(self, teacher, temperature=3.0):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
        self.temperature = temperature

    def on_train_epoch_start(self):
        self.train()  # validation has switched dropout off

    def training_step(self, batch, batch_idx):
        x, y = batch
        with torch.no_grad():
            soft = self.teacher(x)  # expect: mode/teacher-in-train
        logits, t = self.student(x), self.temperature
        kd = F.kl_div(F.log_softmax(logits / t, 1), F.softmax(soft / t, 1), reduction="batchmean") * t * t
        return 0.8 * kd + 0.2 * F.cross_entropy(logits, y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("accuracy", (self.student(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        print("accuracy", round(self.trainer.callback_metrics["accuracy"].item(), 3))

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), lr=4e-3)


def trainer(epochs):
    return L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)


L.seed_everything(1, verbose=False)
train, test = digits()
loader = DataLoader(TensorDataset(*train), 50, shuffle=True)
teacher = Plain()
trainer(8).fit(teacher, loader)
trainer(8).fit(Distil(teacher.net), loader, DataLoader(TensorDataset(*test), 497))
