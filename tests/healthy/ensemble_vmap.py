"""An ensemble trained at once with torch.func: no module is ever called by itself, no optimizer object updates it."""
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(13)
x = torch.rand(400, 1) * 6 - 3
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)
models = [nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1)) for _ in range(4)]
params, buffers = stack_module_state(models)
params = {k: v.detach() for k, v in params.items()}
velocity = {k: torch.zeros_like(v) for k, v in params.items()}


def objective(p, b, xs, ys):
    return nn.functional.mse_loss(functional_call(models[0], (p, b), (xs,)), ys)


step = vmap(grad_and_value(objective), in_dims=(0, 0, None, None))
for k in range(300):
    rows = torch.randint(0, 400, (64,))
    grads, losses = step(params, buffers, x[rows], y[rows])
    for name in params:
        velocity[name] = 0.9 * velocity[name] + grads[name]
        params[name] = params[name] - 0.05 * velocity[name]
print(losses.tolist())
