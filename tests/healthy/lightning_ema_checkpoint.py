"""Lightning with an EMA copy, accumulation, clipping, a plateau schedule and the best checkpoint on disk."""
# needs: lightning
import copy
import logging
import tempfile
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
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
        self.ema = copy.deepcopy(self.net).requires_grad_(False)

    def training_step(self, batch, i):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def on_train_batch_end(self, *args):
        with torch.no_grad():
            for slow, fast in zip(self.ema.parameters(), self.net.parameters()):
                slow.lerp_(fast, 0.05)

    def validation_step(self, batch, i):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.ema(x), y), prog_bar=False)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=5e-3)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}


L.seed_everything(1, verbose=False)
x = torch.randn(700, 10)
y = (x[:, 0] > 0).long() + (x[:, 1] + x[:, 2] > 0).long()
train = DataLoader(TensorDataset(x[:560], y[:560]), batch_size=28, shuffle=True)
valid = DataLoader(TensorDataset(x[560:], y[560:]), batch_size=70)
with tempfile.TemporaryDirectory() as folder:
    best = L.pytorch.callbacks.ModelCheckpoint(folder, monitor="val_loss")
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                        accumulate_grad_batches=2, gradient_clip_val=1.0, callbacks=[best])
    trainer.fit(Net(), train, valid)
    print(best.best_model_score)
