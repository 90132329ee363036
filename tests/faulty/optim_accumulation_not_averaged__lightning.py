# needs: lightning
# allow: optim/lr-too-high, curve/plateau, curve/oscillating, curve/diverging, numeric/gradient-explosion, init/dead-units, numeric/nonfinite
"""Manual accumulation in Lightning: nobody divides there."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 1))

    def training_step(self, batch, i):
        x, y = batch
        self.manual_backward(nn.functional.mse_loss(self.net(x), y))  # expect: optim/accumulation-not-averaged
        if (i + 1) % 8 == 0:
            optimizer = self.optimizers()
            optimizer.step()
            optimizer.zero_grad()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.15, momentum=0.9)


L.seed_everything(0, verbose=False)
x = torch.randn(512, 6)
loader = DataLoader(TensorDataset(x, x @ torch.randn(6, 1)), batch_size=16, shuffle=True)
L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
          enable_model_summary=False).fit(Net(), loader)
