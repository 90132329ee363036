# needs: lightning
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
a = torch.randn(256, 8)
b = a + 0.8 * torch.randn(256, 8)
b[77] = a[77]


class Pairs(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 16)

    def training_step(self, batch, _):
        left, right = self.project(batch[0]), self.project(batch[1])
        distance = ((left - right) ** 2).sum(1).sqrt()  # expect: numeric/nonfinite
        return (distance - 1).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2)


loader = DataLoader(TensorDataset(a, b), batch_size=32, shuffle=True)
trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                    enable_model_summary=False)
trainer.fit(Pairs(), loader)
