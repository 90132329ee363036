# needs: transformers accelerate
# allow: curve/oscillating, curve/spike, curve/plateau, curve/train-val-gap
import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset, SequentialSampler
from transformers import Trainer, TrainingArguments, set_seed

set_seed(0)


class Rows(Dataset):
    def __init__(self):
        self.y = torch.arange(4).repeat_interleave(80)
        self.x = torch.randn(320, 6) + 2 * nn.functional.one_hot(self.y, 6)

    def __len__(self):
        return 320

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.y[index]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x, labels=None):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class InOrder(Trainer):
    def _get_train_sampler(self, *args, **kwargs):
        return SequentialSampler(self.train_dataset)


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(folder, num_train_epochs=4, per_device_train_batch_size=20, learning_rate=5e-3, report_to=[], use_cpu=True,
                             disable_tqdm=True, save_strategy="no", logging_strategy="no", max_grad_norm=0.0)
    InOrder(Net(), args, train_dataset=Rows()).train()  # expect: data/not-shuffled
