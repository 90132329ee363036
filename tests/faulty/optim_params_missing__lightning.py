"""configure_optimizers lists the parts by hand and forgets one."""
# needs: lightning
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.head(self.stem(x)), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.head.parameters(), lr=1e-2)  # expect: optim/params-missing


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    x = torch.randn(256, 8)
    loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=32, shuffle=True)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(Model(), loader)
