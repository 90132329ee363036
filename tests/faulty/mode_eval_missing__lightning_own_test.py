"""A LightningModule is used by hand after training: predictions are made without eval()."""
# needs: lightning
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long()


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


model = Model()
trainer = L.Trainer(max_epochs=4, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
trainer.fit(model, DataLoader(TensorDataset(x[:192], y[:192]), 32, shuffle=True))
model.train()
with torch.no_grad():
    right = sum((model(rows).argmax(1) == labels).sum().item() for rows, labels in DataLoader(TensorDataset(x[192:], y[192:]), 32))  # expect: mode/eval-missing
print(right / 64)
