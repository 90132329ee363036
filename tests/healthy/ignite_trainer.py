"""ignite: trainer and evaluator engines, metrics attached, accumulation in the step function, plateau scheduler on the validation loss, a checkpoint of the best."""
# needs: ignite
import tempfile

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.handlers import Checkpoint, DiskSaver
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
train, val = DataLoader(TensorDataset(x[:512], y[:512]), 16, shuffle=True), DataLoader(TensorDataset(x[512:], y[512:]), 64)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)


def train_step(engine, batch):
    model.train()
    inputs, labels = batch
    loss = criterion(model(inputs), labels) / 2
    loss.backward()
    if engine.state.iteration % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


trainer = Engine(train_step)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "loss": Loss(criterion)})
with tempfile.TemporaryDirectory() as folder:
    keep = Checkpoint({"model": model}, DiskSaver(folder, require_empty=False), score_function=lambda engine: -engine.state.metrics["loss"], n_saved=1)
    evaluator.add_event_handler(Events.COMPLETED, keep)

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate(engine):
        evaluator.run(val)
        plateau.step(evaluator.state.metrics["loss"])
        print(engine.state.epoch, evaluator.state.metrics)

    trainer.run(train, max_epochs=5)
