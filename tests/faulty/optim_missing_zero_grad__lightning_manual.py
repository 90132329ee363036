# needs: lightning
"""Manual optimisation without zero_grad."""
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
        self.net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.manual_backward(loss)
        self.optimizers().step()  # expect: optim/missing-zero-grad

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02)


L.seed_everything(0, verbose=False)
x = torch.randn(320, 6)
loader = DataLoader(TensorDataset(x, x @ torch.randn(6, 1)), batch_size=32, shuffle=True)
L.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
          enable_model_summary=False).fit(Net(), loader)
