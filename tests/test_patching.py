"""The program goes on as it was with every patch on: scripting, compiling, pickling."""
from __future__ import annotations

SCRIPT = '''
import pickle
import torch
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.relu, self.drop, self.norm = nn.Linear(3, 3), nn.ReLU(), nn.Dropout(), nn.BatchNorm1d(3)

    def forward(self, x):
        x = torch.tanh(F.relu(self.layer(x)))
        x = F.dropout(self.norm(x).relu(), 0.5, self.training)
        return torch.relu(torch.sigmoid(self.relu(x)).softmax(1)).clamp(min=0.0)

x = torch.randn(4, 3)
net = Net().eval()
expected = net(x)
assert torch.equal(torch.jit.script(net)(x), expected)
assert torch.equal(torch.jit.trace(net, x)(x), expected)
assert torch.equal(torch.compile(net, backend="eager", fullgraph=True)(x), expected)
assert torch.equal(pickle.loads(pickle.dumps(net))(x), expected)
print("unharmed")
'''


def test_scripted_traced_compiled_and_pickled(observe):
    recording = observe(SCRIPT)
    assert "unharmed" in recording.output, recording.status
