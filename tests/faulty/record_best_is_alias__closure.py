# twin: best.update(loss=loss, weights=model.state_dict()) => best.update(loss=loss, weights={k: v.clone() for k, v in model.state_dict().items()})
# allow: curve/overfitting
"""A closure remembers the best loss and 'its' weights, which are those of the model that goes on."""
import torch
from torch import nn


def make_keeper(model):
    best = {"loss": float("inf")}

    def offer(loss):
        if loss < best["loss"]:
            best.update(loss=loss, weights=model.state_dict())  # expect: record/best-is-alias
        return best
    return offer


torch.manual_seed(0)
x = torch.randn(260, 20)
y = (x[:, 0] + torch.randn(260) > 0).long()
model = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
offer = make_keeper(model)
for epoch in range(20):
    for rows in torch.randperm(160).split(20):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        best = offer(nn.functional.cross_entropy(model(x[160:]), y[160:]).item())
model.load_state_dict(best["weights"])
with torch.no_grad():
    print(best["loss"], nn.functional.cross_entropy(model(x[160:]), y[160:]).item())
