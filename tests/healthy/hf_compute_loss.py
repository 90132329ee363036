"""HF Trainer with a compute_loss of its own: weighted classes, label smoothing, a regulariser on the logits; accumulation handled by num_items_in_batch."""
# needs: transformers accelerate
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)


class Rows(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 10, generator=g)
        self.y = (self.x[:, 0] + self.x[:, 1] > 0.8).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"features": self.x[i], "labels": self.y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 2))

    def forward(self, features, labels=None):
        return {"logits": self.net(features)}


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor([0.7, 1.8])
        loss = nn.functional.cross_entropy(outputs["logits"], labels, weight=weight, label_smoothing=0.05)
        loss = loss + 1e-4 * outputs["logits"].pow(2).mean()
        return (loss, outputs) if return_outputs else loss


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=5e-3, warmup_steps=10, lr_scheduler_type="cosine",
                             report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no", logging_steps=20, eval_strategy="epoch",
                             label_names=["labels"])
    Weighted(Net(), args, train_dataset=Rows(480, 0), eval_dataset=Rows(120, 1)).train()
