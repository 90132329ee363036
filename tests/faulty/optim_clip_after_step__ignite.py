# needs: ignite
"""ignite: the clip is a handler that runs when the iteration is over."""
import torch
from ignite.engine import Events, create_supervised_trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(500, 8)
y = x @ torch.randn(8, 1)
loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
trainer = create_supervised_trainer(model, optimizer, nn.MSELoss())


@trainer.on(Events.ITERATION_COMPLETED)
def clip(engine):
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: optim/clip-after-step


@trainer.on(Events.EPOCH_COMPLETED)
def log(engine):
    print(engine.state.epoch, engine.state.output)


trainer.run(loader, max_epochs=5)
