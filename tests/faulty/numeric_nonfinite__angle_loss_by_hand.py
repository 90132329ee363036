import torch

torch.manual_seed(0)
x = torch.nn.functional.normalize(torch.randn(300, 3), dim=1)
turn = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
y = x @ turn
w = (torch.eye(3) + 0.3 * torch.randn(3, 3)).requires_grad_()
for _ in range(400):
    rows = torch.randint(0, 300, (50,))
    out = torch.nn.functional.normalize(x[rows] @ w, dim=1)
    cosine = (out * y[rows]).sum(1).clamp(-1, 1)
    loss = torch.arccos(cosine).mean()  # expect: numeric/nonfinite
    (g,) = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w -= 0.1 * g
