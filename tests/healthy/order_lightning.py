# needs: lightning
"""Automatic optimisation with accumulation and clipping: Lightning divides, clears and clips in the right places."""
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
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 3)]


L.seed_everything(0, verbose=False)
x = torch.randn(176, 6)
loader = DataLoader(TensorDataset(x, x @ torch.randn(6, 1)), batch_size=16, shuffle=True)
trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                    enable_model_summary=False, accumulate_grad_batches=4, gradient_clip_val=5.0)
trainer.fit(Net(), loader)
