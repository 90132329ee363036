# needs: lightning
"""Manual optimisation of a GAN with toggles, as in the Lightning examples."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.d = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
        self.loss = nn.BCEWithLogitsLoss()

    def training_step(self, batch, _):
        real, = batch
        opt_g, opt_d = self.optimizers()
        self.toggle_optimizer(opt_g)
        loss = self.loss(self.d(self.g(torch.randn(len(real), 4))), torch.ones(len(real), 1))
        self.manual_backward(loss)
        opt_g.step()
        opt_g.zero_grad()
        self.untoggle_optimizer(opt_g)
        self.toggle_optimizer(opt_d)
        fake = self.g(torch.randn(len(real), 4)).detach()
        loss = self.loss(self.d(real), torch.ones(len(real), 1)) + self.loss(self.d(fake), torch.zeros(len(real), 1))
        self.manual_backward(loss)
        opt_d.step()
        opt_d.zero_grad()
        self.untoggle_optimizer(opt_d)

    def configure_optimizers(self):
        return (torch.optim.Adam(self.g.parameters(), lr=1e-3, betas=(0.5, 0.99)),
                torch.optim.Adam(self.d.parameters(), lr=1e-3, betas=(0.5, 0.99)))


L.seed_everything(0, verbose=False)
loader = DataLoader(TensorDataset(torch.randn(512, 2) * 0.3 + 1.0), batch_size=32, shuffle=True)
L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
          enable_model_summary=False).fit(Gan(), loader)
