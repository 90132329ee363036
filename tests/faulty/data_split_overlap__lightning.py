# needs: lightning
# allow: curve/overfitting, curve/train-val-gap, repro/unseeded
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Data(L.LightningDataModule):
    def setup(self, stage=None):
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(400, 8, generator=generator)
        y = (x[:, 0] * x[:, 1] > 0).long()
        both = TensorDataset(x, y)
        self.train, _ = torch.utils.data.random_split(both, [320, 80], generator=torch.Generator().manual_seed(1))
        _, self.val = torch.utils.data.random_split(both, [320, 80], generator=torch.Generator().manual_seed(2))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=40)  # expect: data/split-overlap


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


L.seed_everything(0, verbose=False)
trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                    enable_model_summary=False)
trainer.fit(Net(), Data())
