# needs: lightning
# twin: self.best = module.state_dict() => self.best = copy.deepcopy(module.state_dict())
# allow: curve/overfitting
"""A Lightning callback keeps the state dict of the best epoch, by reference, and loads it at the end."""
import copy

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class KeepBest(L.Callback):
    low, best = float("inf"), None

    def on_validation_epoch_end(self, trainer, module):
        value = trainer.callback_metrics.get("val")
        if value is not None and not trainer.sanity_checking and float(value) < self.low:
            self.low = float(value)
            self.best = module.state_dict()  # expect: record/best-is-alias

    def on_train_end(self, trainer, module):
        module.load_state_dict(self.best)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 2))

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("val", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


L.seed_everything(0)
x = torch.randn(260, 20)
y = (x[:, 0] + torch.randn(260) > 0).long()
trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                    callbacks=[KeepBest()])
model = Net()
trainer.fit(model, DataLoader(TensorDataset(x[:160], y[:160]), 20, shuffle=True), DataLoader(TensorDataset(x[160:], y[160:]), 100))
