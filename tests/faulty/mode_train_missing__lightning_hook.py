"""A manual evaluation inside a Lightning hook leaves the model in eval mode."""
# needs: lightning
# allow: curve/overfitting, curve/train-val-gap
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.manual_seed(7)
x = torch.randn(400, 8)
y = (x[:, 0] + x[:, 1] > 0).long()


class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))

    def training_step(self, batch, index):
        if index % 4 == 3:
            self.check()
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def check(self):
        self.net.eval()  # expect: mode/train-missing
        with torch.no_grad():
            return (self.net(x[320:]).argmax(1) == y[320:]).float().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                    enable_model_summary=False)
trainer.fit(Lit(), DataLoader(TensorDataset(x[:320], y[:320]), 20, shuffle=True))
