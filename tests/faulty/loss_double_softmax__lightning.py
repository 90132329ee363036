"""A LightningModule whose forward ends in a softmax for convenience."""
# needs: lightning
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.body(x)).softmax(dim=-1)

    def training_step(self, batch, _):
        x, y = batch
        probabilities = self(x)
        return nn.functional.cross_entropy(probabilities, y)  # expect: loss/double-softmax

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


trainer = L.Trainer(max_epochs=4, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
trainer.fit(Model(), DataLoader(TensorDataset(x, y), 32, shuffle=True))
