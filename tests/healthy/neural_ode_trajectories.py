"""A neural ODE by Runge-Kutta steps in a loop, trained on short pieces of trajectories; the loss over all times; lr by plateau on a validation loss."""
import torch
from torch import nn

torch.manual_seed(11)


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.1)
                nn.init.zeros_(m.bias)

    def forward(self, t, y):
        return self.net(y ** 3)


def rk4(f, y, times):
    out = [y]
    for t0, t1 in zip(times[:-1], times[1:]):
        h = t1 - t0
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h / 2 * k1)
        k3 = f(t0 + h / 2, y + h / 2 * k2)
        k4 = f(t1, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return torch.stack(out)


A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
times = torch.linspace(0, 10, 400)
with torch.no_grad():
    truth = rk4(lambda t, y: (y ** 3) @ A, torch.tensor([2.0, 0.0]), times)
func = Dynamics()
optimizer = torch.optim.RMSprop(func.parameters(), lr=2e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
for step in range(60):
    starts = torch.randint(0, 300, (16,))
    target = torch.stack([truth[starts + k] for k in range(8)])
    prediction = rk4(func, truth[starts], times[:8])
    loss = (prediction - target).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            val = (rk4(func, truth[300], times[300:340]) - truth[300:340]).abs().mean()
        plateau.step(val)
        print(step, loss.item(), val.item(), optimizer.param_groups[0]["lr"])
