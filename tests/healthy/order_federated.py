"""FedAvg on one model object: weights are loaded before each client's optimizer is built."""
import torch
from torch import nn

torch.manual_seed(0)
clients = [torch.randn(64, 4) for _ in range(3)]
truth = torch.tensor([1.0, -1.0, 0.5, 0.0])
model = nn.Linear(4, 1)
world = {name: value.clone() for name, value in model.state_dict().items()}
for _ in range(6):
    gathered = []
    for x in clients:
        model.load_state_dict(world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for rows in torch.randperm(64).split(16):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x[rows]).squeeze(1), x[rows] @ truth).backward()
            optimizer.step()
        gathered.append({name: value.clone() for name, value in model.state_dict().items()})
    world = {name: torch.stack([each[name] for each in gathered]).mean(0) for name in world}
