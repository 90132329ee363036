# twin: nn.Linear(24, 3), nn.Softmax(dim=1)) => nn.Linear(24, 3))
"""L-BFGS with a closure: the network ends in a softmax, the loss has its own."""
import torch
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale
from torch import nn

torch.manual_seed(0)
X, Y = load_iris(return_X_y=True)
x, y = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(Y)
model = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3), nn.Softmax(dim=1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)


def fit(batch, target):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)  # expect: loss/double-softmax
        loss.backward()
        return loss
    return optimizer.step(closure)


for step in range(15):
    print(step, fit(x, y).item())
