# needs: transformers accelerate
"""HF Trainer: a custom compute_loss for regression takes [B,1] minus [B]."""
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)


class Rows(torch.utils.data.Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 10)
        self.y = self.x[:, 0] * 2 - self.x[:, 1]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"features": self.x[i], "labels": self.y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, features, labels=None):
        return {"logits": self.net(features)}


class Huber(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        error = outputs["logits"] - labels  # expect: shape/silent-broadcast
        loss = torch.where(error.abs() < 1, 0.5 * error ** 2, error.abs() - 0.5).mean()
        return (loss, outputs) if return_outputs else loss


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(folder, num_train_epochs=3, per_device_train_batch_size=20, learning_rate=5e-3, report_to=[], use_cpu=True,
                             disable_tqdm=True, save_strategy="no", logging_strategy="no")
    Huber(Net(), args, train_dataset=Rows(400)).train()
