"""The program goes on as it was with every patch on: scripting, compiling, pickling."""
from __future__ import annotations

import subprocess
import sys

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


TWICE = '''
import gc
import torch
import traindx
from torch import nn
from torch.jit._builtins import _get_builtin_table

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return torch.softmax(torch.nn.functional.dropout(torch.relu(self.layer(x)), 0.1, self.training), 1)

def kernels():
    return {id: name for id, name in _get_builtin_table().items() if name.startswith("aten")}

before = kernels()
for _ in range(3):
    with traindx.watch():
        torch.jit.script(Net())(torch.randn(2, 3)).sum().backward()
    gc.collect()
    assert kernels() == before
torch.jit.script(Net())(torch.randn(2, 3))
print("unharmed")
'''


def test_scripted_in_one_watched_block_after_another(tmp_path):
    """torch.jit knows C functions by id: what stood for one must leave its table, or the next at that address is taken for it."""
    script = tmp_path / "twice.py"
    script.write_text(TWICE)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert "unharmed" in done.stdout, done.stderr
