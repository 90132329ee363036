"""Watching changes nothing: weights and random numbers to the last bit, what is raised, what lives, whatever the program does."""
from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from traindx.core.observed import ProbeFailed

PRELUDE = """
import copy, hashlib, io, pickle, random, sys, threading, warnings
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(0); np.random.seed(0); torch.manual_seed(0)

def digest(*things):
    total = hashlib.sha256()
    def eat(thing):
        if isinstance(thing, torch.Tensor):
            total.update(thing.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if thing.numel() else b"-")
        elif isinstance(thing, dict):
            for key in sorted(thing, key=str):
                total.update(str(key).encode()); eat(thing[key])
        elif isinstance(thing, (list, tuple)):
            for each in thing: eat(each)
        elif isinstance(thing, nn.Module):
            eat(dict(thing.state_dict()))
        elif isinstance(thing, torch.optim.Optimizer):
            eat(thing.state_dict()["state"])
        else:
            total.update(repr(thing).encode())
    for thing in things: eat(thing)
    eat(torch.get_rng_state())
    total.update(repr((random.getstate(), np.random.get_state()[1].tobytes())).encode())
    print("DIGEST", total.hexdigest())

def train(model, batches, optimizer=None, loss_fn=F.mse_loss):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
    return optimizer

def batches(n=12, b=8, d=8, o=1):
    return [(torch.randn(b, d), torch.randn(b, o)) for _ in range(n)]
"""

SAME = {
    "mlp_with_evaluation": """
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
        data = batches(40)
        for part in range(4):
            model.train()
            optimizer = train(model, data)
            model.eval()
            with torch.no_grad():
                print(sum(F.mse_loss(model(x), y).item() for x, y in data[:5]))
        digest(model, optimizer)
    """,
    "cnn_batchnorm": """
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.2), nn.Flatten(), nn.Linear(8 * 36, 4))
        data = [(torch.randn(6, 3, 8, 8), torch.randint(0, 4, (6,))) for _ in range(10)]
        digest(model, train(model, data, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), F.cross_entropy))
    """,
    "rnn": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.head = nn.LSTM(8, 16, 2, dropout=0.1, batch_first=True), nn.Linear(16, 1)
            def forward(self, x):
                return self.head(self.rnn(x)[0][:, -1])
        model = Net()
        digest(model, train(model, [(torch.randn(4, 5, 8), torch.randn(4, 1)) for _ in range(10)]))
    """,
    "transformer": """
        model = nn.Sequential(nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2), nn.Linear(16, 3))
        data = [(torch.randn(4, 6, 16), torch.randint(0, 3, (4, 6))) for _ in range(9)]
        digest(model, train(model, data, loss_fn=lambda a, b: F.cross_entropy(a.flatten(0, 1), b.flatten())))
    """,
    "amp_and_scaler": """
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        optimizer, scaler = torch.optim.AdamW(model.parameters(), 1e-2), torch.amp.GradScaler("cpu")
        for i, (x, y) in enumerate(batches(20)):
            optimizer.zero_grad(set_to_none=i % 2 == 0)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.mse_loss(model(x), y)
            scaler.scale(loss * (float("inf") if i == 7 else 1.0)).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        digest(model, optimizer, scaler.get_scale())
    """,
    "lbfgs": """
        model = nn.Linear(8, 1)
        x, y = torch.randn(64, 8), torch.randn(64, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss
        for _ in range(6):
            optimizer.step(closure)
        digest(model)
    """,
    "loader_workers": """
        from torch.utils.data import DataLoader, TensorDataset
        model = nn.Linear(8, 1)
        data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
        for epoch in range(2):
            for workers in (0, 2):
                optimizer = train(model, DataLoader(data, batch_size=16, shuffle=True, num_workers=workers))
        digest(model, optimizer)
    """,
    "compile": """
        for backend in ("eager", "aot_eager"):
            torch._dynamo.reset()
            model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
            step = torch.compile(model, backend=backend, fullgraph=True)
            optimizer = train(step, batches(6), torch.optim.SGD(model.parameters(), 0.1))
            digest(model)
        @torch.compile(backend="eager", fullgraph=True)
        def whole(x, y):
            return F.mse_loss(torch.softmax(model(x), -1).sum(-1, keepdim=True).mean() + x.sum(), y.mean())
        print(whole(*batches(1)[0]).item())
    """,
    "several_of_each": """
        G, D = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 8)), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.RMSprop(D.parameters(), 1e-3)
        sched = torch.optim.lr_scheduler.OneCycleLR(og, 0.01, total_steps=20)
        for _ in range(20):
            real, fake = torch.randn(8, 8), G(torch.randn(8, 4))
            od.zero_grad()
            (F.softplus(D(fake.detach())).mean() + F.softplus(-D(real)).mean()).backward()
            od.step()
            og.zero_grad()
            F.softplus(-D(fake)).mean().backward()
            og.step(); sched.step()
        digest(G, D, og, od, sched.get_last_lr())
    """,
    "functional_transforms": """
        from torch.func import functional_call, grad, vmap, jacrev, hessian
        model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1))
        params = {k: v.detach() for k, v in model.named_parameters()}
        def loss(p, x, y):
            return F.mse_loss(functional_call(model, p, (x.unsqueeze(0),)).squeeze(0), y)
        x, y = torch.randn(5, 8), torch.randn(5, 1)
        per_sample = vmap(grad(loss), (None, 0, 0))(params, x, y)
        H = hessian(lambda w: F.mse_loss(x @ w, y))(torch.randn(8, 1))
        J = jacrev(lambda v: torch.softmax(v, 0).sum() + v.sigmoid().mean())(torch.randn(3))
        digest(per_sample, H, J)
    """,
    "double_backward_and_custom": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x); return x * x
            @staticmethod
            def backward(ctx, g):
                x, = ctx.saved_tensors; return 2 * x * g
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for x, _ in batches(10):
            x.requires_grad_()
            out = Square.apply(model(x)).sum()
            g, = torch.autograd.grad(out, x, create_graph=True)
            optimizer.zero_grad()
            ((g.norm(dim=1) - 1) ** 2).mean().backward()
            optimizer.step()
        digest(model, optimizer)
    """,
    "checkpointing": """
        from torch.utils.checkpoint import checkpoint
        blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU()) for _ in range(3))
        optimizer = torch.optim.SGD(blocks.parameters(), 0.1)
        for reentrant in (False, True):
            for x, _ in batches(8):
                x.requires_grad_()
                for block in blocks:
                    x = checkpoint(block, x, use_reentrant=reentrant)
                loss = F.mse_loss(x, torch.zeros_like(x))
                optimizer.zero_grad(); loss.backward(); optimizer.step()
        digest(blocks)
    """,
    "script_trace_fx_export": """
        import torch.fx
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.a = nn.Linear(8, 4); self.loss = nn.CrossEntropyLoss()
            def forward(self, x):
                return F.softmax(self.a(x), dim=-1).sum() + self.a(x).sigmoid().mean() + torch.sum(x)
        net = Net(); x = torch.randn(2, 8)
        scripted = torch.jit.script(net); traced = torch.jit.trace(net, x); graph = torch.fx.symbolic_trace(net)
        torch.jit.script(nn.CrossEntropyLoss()); torch.jit.script(nn.MSELoss())
        exported = torch.export.export(net, (x,))
        print(graph.code)
        digest(scripted(x), traced(x), graph(x), exported.module()(x), net(x))
        train(scripted, [(x, torch.tensor(0.0))] * 3, torch.optim.SGD(scripted.parameters(), 0.1), lambda a, b: F.mse_loss(a, b))
        digest(scripted)
    """,
    "pickles_and_copies": """
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = train(model, batches(5))
        for _ in range(3):
            file = io.BytesIO(); torch.save(model, file); file.seek(0)
            model = torch.load(file, weights_only=False)
            model = copy.deepcopy(pickle.loads(pickle.dumps(model)))
            new = torch.optim.Adam(model.parameters(), 1e-2); new.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            optimizer = copy.deepcopy(pickle.loads(pickle.dumps(new)))
            sched = torch.optim.lr_scheduler.StepLR(new, 2); sched.load_state_dict(pickle.loads(pickle.dumps(sched.state_dict())))
            train(model, batches(5), new); sched.step()
        digest(model, new)
    """,
    "strange_tensors": """
        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})
        class Refusing(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func.__name__ in ("__get__", "dim", "shape", "size", "numel", "detach", "item"):
                    raise TypeError("hands off")
                return super().__torch_function__(func, types, args, kwargs or {})
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.a = nn.Linear(8, 1)
            def forward(self, x):
                return self.a(x)
        net = Net(); optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for kind in (Loud, Refusing):
            x = torch.randn(4, 8).as_subclass(kind)
            for _ in range(4):
                optimizer.zero_grad(); out = net(x); loss = (out * out).mean(); loss.backward(); optimizer.step()
        class Any(nn.Module):
            def forward(self, x): return x
        dense = torch.eye(3)
        for thing in (torch.empty(2, 2, device="meta"), dense.to_sparse(), dense.to_sparse_csr(), torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8),
                      torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.complex(dense, dense), torch.zeros(0), torch.tensor(True),
                      torch.zeros(3, dtype=torch.int8), torch.zeros((), dtype=torch.float64), torch.ones(2).to_mkldnn(), None, 3, "text", {"a": [dense]}):
            Any()(thing)
            net(torch.randn(2, 8)).sum().backward()
        emb = nn.Embedding(10, 4, sparse=True); so = torch.optim.SparseAdam(emb.parameters(), 0.1)
        for _ in range(5):
            so.zero_grad(); emb(torch.randint(0, 10, (6,))).pow(2).sum().backward(); so.step()
        c = torch.randn(4, dtype=torch.complex64, requires_grad=True); co = torch.optim.SGD([c], 0.1)
        for _ in range(3):
            co.zero_grad(); c.abs().pow(2).sum().backward(); co.step()
        digest(net, emb, torch.view_as_real(c))
    """,
    "strange_loaders": """
        from dataclasses import dataclass
        from itertools import islice
        from torch.utils.data import DataLoader, IterableDataset, Sampler, TensorDataset
        class Endless(IterableDataset):
            def __iter__(self):
                worker = torch.utils.data.get_worker_info()
                g = torch.Generator().manual_seed(worker.id if worker else 9)
                while True:
                    yield torch.randn(8, generator=g), torch.randn(1, generator=g)
        class NoLength(Sampler):
            def __iter__(self): return iter(torch.randperm(24).tolist())
        @dataclass
        class Batch:
            x: torch.Tensor
            y: torch.Tensor
            words: list
        def as_dataclass(rows): return Batch(torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows]), ["a"] * len(rows))
        def as_dict(rows): return {"in": {"x": torch.stack([r[0] for r in rows])}, "y": torch.stack([r[1] for r in rows]), "odd": None}
        def ragged(rows): return [r[0][: 1 + i % 7] for i, r in enumerate(rows)], [float(r[1]) for r in rows]
        model = nn.Linear(8, 1); optimizer = torch.optim.SGD(model.parameters(), 0.1)
        data = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
        for loader in (DataLoader(Endless(), 4), DataLoader(Endless(), 4, num_workers=2), DataLoader(Endless(), None)):
            train(model, islice(loader, 8), optimizer)
        for kind, (x, y) in {"x": (lambda b: b.x, lambda b: b.y), "d": (lambda b: b["in"]["x"], lambda b: b["y"])}.items():
            for batch in DataLoader(data, 4, sampler=NoLength(), collate_fn=as_dataclass if kind == "x" else as_dict):
                train(model, [(x(batch), y(batch))], optimizer)
        for rows, targets in DataLoader(data, 6, collate_fn=ragged):
            optimizer.zero_grad()
            sum((model(F.pad(row, (0, 8 - len(row)))) - target) ** 2 for row, target in zip(rows, targets)).backward()
            optimizer.step()
        for empty in (torch.zeros(0, 8), torch.zeros(2, 0, 8)):
            optimizer.zero_grad(); model(empty).sum().backward(); optimizer.step()
        digest(model)
    """,
    "strange_labels": """
        model = nn.Linear(8, 3); optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.randn(6, 8)
        for y, loss in ((torch.tensor([0.0, 1, 2, 0, 1, 2]), lambda a, b: F.mse_loss(a[:, 0], b)),  # class ids as floats
                        (torch.full((6, 3), 1 / 3), F.cross_entropy), (torch.tensor([-100] * 5 + [1]), F.cross_entropy),
                        (torch.ones(6, 3, dtype=torch.bool), lambda a, b: F.binary_cross_entropy_with_logits(a, b.float())),
                        (torch.zeros(6, dtype=torch.uint8), lambda a, b: F.cross_entropy(a, b.long()))):
            train(model, [(x, y)] * 3, optimizer, loss)
        for wrong in (torch.tensor([1, 2, 3, 4, 5, 6]), torch.rand(6), torch.tensor(["a"].index("a"))):
            try:
                train(model, [(x, wrong)], optimizer, F.cross_entropy)
            except Exception as problem:
                print(type(problem).__name__)
        optimizer.zero_grad()
        digest(model)
    """,
    "strange_objects": """
        class Hostile:
            def __getattr__(self, name): raise RuntimeError("no " + name)
            def __len__(self): raise RuntimeError("no length")
            def __eq__(self, other): raise RuntimeError("no comparison")
            def __bool__(self): raise RuntimeError("no truth")
            def __iter__(self): raise RuntimeError("no iteration")
            def __repr__(self): raise RuntimeError("no repr")
            __hash__ = object.__hash__
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.a = nn.Linear(8, 1); self.odd = Hostile()
            def forward(self, x, odd=None): return self.a(x), odd
            def train(self, mode=True, extra=None):
                super().train(mode); return self
            def __getattr__(self, name):
                if name == "forbidden": raise ValueError("forbidden")
                return super().__getattr__(name)
        net = Net(); net.train(True, extra=1); net.eval(); net.train()
        class Unhashable(nn.Linear):
            __hash__ = None
            def __eq__(self, other): raise RuntimeError("no comparison")
        odd = Unhashable(8, 1)
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 6
            def __getitem__(self, i): return torch.randn(8), torch.randn(1), Hostile()
        optimizer = torch.optim.SGD([*net.a.parameters(), odd.weight], 0.1)
        loader = torch.utils.data.DataLoader(Data(), 2, collate_fn=lambda rows: (torch.stack([r[0] for r in rows]), rows[0][2]))
        for x, hostile in loader:
            optimizer.zero_grad()
            out, _ = net(x, odd=hostile)
            (out.mean() + odd(x).mean()).backward()
            optimizer.step()
        local = Hostile()
        net.eval()
        with torch.no_grad():
            net(x, local)
        digest(net.a, odd.weight)
    """,
    "patched_by_the_user": """
        loss_before, call_before = F.mse_loss, nn.Module.__call__
        F.mse_loss = lambda *a, **k: loss_before(*a, **k) * 2
        def noisy(self, *a, **k): return call_before(self, *a, **k)
        nn.Module.__call__ = noisy
        model = nn.Linear(8, 1)
        model.forward = lambda x, old=model.forward: old(x) + 1
        optimizer = train(model, batches(6))
        F.mse_loss, nn.Module.__call__ = loss_before, call_before
        step_before = optimizer.step
        optimizer.step = lambda *a: step_before(*a)
        train(model, batches(6), optimizer)
        for name in ("MSELoss", "HuberLoss"): delattr(nn, name)
        del F.huber_loss, torch.Tensor.__deepcopy__
        train(model, batches(3), optimizer)
        digest(model, optimizer)
    """,
    "own_optimizers": """
        class Mine(torch.optim.Optimizer):
            def __init__(self, params): super().__init__(params, dict(lr=0.1))
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None: p.data.add_(p.grad, alpha=-group["lr"])
        class Duck:
            def __init__(self, params): self.params = list(params)
            def zero_grad(self):
                for p in self.params: p.grad = None
            def step(self):
                with torch.no_grad():
                    for p in self.params: p -= 0.1 * p.grad
        class Twice(torch.optim.SGD):
            def step(self, closure=None):
                super().step(); super().step()
        for kind in (Mine, Duck, lambda p: Twice(p, 0.01)):
            model = nn.Linear(8, 1)
            train(model, batches(10), kind(model.parameters()))
            digest(model)
    """,
    "modes_and_hooks": """
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        class Fn(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None): return func(*args, **(kwargs or {}))
        class Dp(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None): return func(*args, **(kwargs or {}))
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        model[0].register_forward_hook(lambda m, i, o: o * 1.5)
        model[2].register_full_backward_hook(lambda m, gi, go: None)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for mode in (Fn, Dp):
            with mode():
                train(model, batches(3), optimizer)
        a = Fn(); a.__enter__()
        train(model, batches(2), optimizer)
        a.__exit__(None, None, None)
        with torch.device("cpu"): train(model, batches(2), optimizer)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t): train(model, batches(2), optimizer)
        with torch.autograd.set_detect_anomaly(True): train(model, batches(2), optimizer)
        with torch.inference_mode(): print(model(torch.randn(2, 8)).sum().item())
        torch.use_deterministic_algorithms(True); train(model, batches(2), optimizer)
        digest(model)
    """,
    "no_module_no_optimizer": """
        w = torch.randn(8, 1, requires_grad=True)
        for x, y in batches(12):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad.zero_()
        digest(w)
    """,
    "children": """
        import multiprocessing
        def child(q):
            model = nn.Linear(8, 1); train(model, batches(3)); q.put(float(model.weight.sum()))
        if __name__ == "__main__":
            model = nn.Linear(8, 1); optimizer = train(model, batches(3))
            context = multiprocessing.get_context("fork"); q = context.SimpleQueue()
            p = context.Process(target=child, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)
            train(model, batches(3), optimizer)
            digest(model)
    """,
}


def plain(script: Path) -> str:
    """What the script prints when nobody watches, in an interpreter of its own: a fork would inherit what other tests left."""
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=script.parent)
    return done.stdout


def told(text: str) -> list[str]:
    """What the program itself says; warnings name files of the machine."""
    return [line for line in text.splitlines() if "Warning" not in line and not line.startswith(("  ", "Consider"))]


@pytest.mark.parametrize("name", SAME)
def test_same_to_the_last_bit(name, observe, tmp_path):
    script = tmp_path / f"{name}.py"
    script.write_text(PRELUDE + textwrap.dedent(SAME[name]))
    before = plain(script)
    recording = observe(script)
    assert "DIGEST" in before and "Traceback" not in before, before
    assert told(recording.output) == told(before), recording.output[-3000:]
    assert recording.of(ProbeFailed) == []


RAISES = {
    "in_forward": "class N(nn.Module):\n    def forward(self, x): raise KeyError('mine')\nN()(1)",
    "in_inner_forward": "class N(nn.Module):\n    def forward(self, x): raise KeyError('mine')\nnn.Sequential(nn.Linear(8, 8), N())(torch.randn(2, 8))",
    "in_loss": "F.cross_entropy(torch.randn(3, 4), torch.tensor([0, 1, 9]))",
    "in_loss_call": "F.mse_loss()",
    "in_backward": "torch.ones(3, requires_grad=True).sum().detach().backward()",
    "in_backward_twice": "l = (nn.Linear(8, 1)(torch.randn(2, 8)) ** 2).sum(); l.backward(); l.backward()",
    "in_hook": "w = torch.ones(3, requires_grad=True)\ndef bad(g): raise ValueError('mine')\nw.register_hook(bad)\n(w * 2).sum().backward()",
    "in_step": "class O(torch.optim.SGD):\n    def step(self, closure=None): raise OSError('mine')\nm = nn.Linear(8, 1)\ntrain(m, batches(2), O(m.parameters(), 0.1))",
    "in_closure": "m = nn.Linear(8, 1)\no = torch.optim.LBFGS(m.parameters())\ndef c(): raise ZeroDivisionError('mine')\no.step(c)",
    "in_loader": "class D(torch.utils.data.Dataset):\n    def __len__(self): return 4\n    def __getitem__(self, i): raise IndexError('mine')\nfor x in torch.utils.data.DataLoader(D()): pass",
    "in_state": "nn.Linear(2, 2).load_state_dict({'weight': torch.ones(3, 3)})",
    "in_save": "torch.save({'a': lambda: 0}, '/nonexistent/folder/file')",
    "in_load": "torch.load('/nonexistent/file')",
    "in_scheduler": "o = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1)\ntorch.optim.lr_scheduler.StepLR(o, 'x').step()",
    "in_train": "class N(nn.Linear):\n    def train(self, mode=True): raise NameError('mine')\nN(2, 2).train()",
    "in_item": "torch.ones(3).item()",
    "in_softmax": "torch.softmax(torch.ones(3), dim=7)",
    "in_sum": "torch.ones(3).sum(dim=5)",
    "in_clip": "nn.utils.clip_grad_norm_(nn.Linear(2, 2).parameters(), 'a')\nnn.utils.clip_grad_norm_([1, 2], 1.0)",
    "exit": "train(nn.Linear(8, 1), batches(2)); sys.exit(3)",
    "interrupt": "train(nn.Linear(8, 1), batches(2)); raise KeyboardInterrupt",
}
REPORT = """
def attempt():
{body}
try:
    attempt()
except BaseException as problem:
    frames = []
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __file__: frames.append(trace.tb_lineno)
        trace = trace.tb_next
    print("RAISED", type(problem).__name__, str(problem)[:200].split(chr(10))[0], frames, problem.__cause__ is None)
else:
    print("NOTHING")
print("GRAD", torch.is_grad_enabled(), torch.overrides._len_torch_function_stack())
train(nn.Linear(8, 1), batches(3))
"""


@pytest.mark.parametrize("name", RAISES)
def test_what_the_program_raises_is_its_own(name, observe, tmp_path):
    script = tmp_path / f"{name}.py"
    script.write_text(PRELUDE + REPORT.format(body=textwrap.indent(RAISES[name], "    ")))
    before = plain(script)
    recording = observe(script)
    assert "GRAD True 0" in before
    assert told(recording.output)[:1] == told(before)[:1]
    assert "Traceback" not in recording.output
    assert recording.of(ProbeFailed) == []


def test_an_error_in_the_middle_of_a_traced_step_leaves_nothing_behind(observe, tmp_path):
    body = """
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(12):
        try:
            loss = F.mse_loss(model(torch.randn(4, 8 if i % 3 else 7)), torch.randn(4, 1))
            loss.backward(); optimizer.step()
        except RuntimeError:
            print(torch.overrides._len_torch_function_stack() <= 1)
    digest(model)
    """
    script = tmp_path / "middle.py"
    script.write_text(PRELUDE + textwrap.dedent(body))
    before = plain(script)
    recording = observe(script)
    assert told(recording.output) == told(before)
    assert recording.of(ProbeFailed) == []


def test_no_tensor_lives_longer(observe, tmp_path):
    body = """
    import gc
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    criterion = nn.CrossEntropyLoss()
    for step in range(70):
        x, y = torch.randn(8, 8), torch.randint(0, 3, (8,))
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            model.eval()
            with torch.no_grad(): criterion(model(x), y).item()
            model.train()
    del x, y, loss
    gc.collect()
    warnings.simplefilter("ignore")
    alive = [t for t in gc.get_objects() if issubclass(type(t), torch.Tensor)]
    print("ALIVE", len(alive), sum(t.grad_fn is not None for t in alive), sum(t.numel() > 300 for t in alive))
    """
    script = tmp_path / "lives.py"
    script.write_text(PRELUDE + textwrap.dedent(body))
    before, after = plain(script), observe(script, fresh=True).output

    def counts(text):
        return [int(word) for word in next(line for line in text.splitlines() if line.startswith("ALIVE")).split()[1:]]
    all_before, graphs_before, large_before = counts(before)
    all_after, graphs_after, large_after = counts(after)
    assert graphs_after == graphs_before
    assert large_after == large_before
    assert all_after - all_before <= 40  # small samples of ours: a number that does not grow with the run


def test_threads_that_train_side_by_side(observe, tmp_path):
    body = """
    def work(k):
        g = torch.Generator().manual_seed(k)
        w = torch.randn(8, 1, generator=g).requires_grad_()
        model = nn.Linear(8, 1)
        with torch.no_grad():
            model.weight.copy_(w.T); model.bias.zero_()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for _ in range(30):
            x = torch.randn(8, 8, generator=g)
            optimizer.zero_grad()
            F.mse_loss(model(x), x[:, :1]).backward()
            optimizer.step()
        results[k] = model.weight.detach().clone()
    results = {}
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    digest(results[0], results[1], results[2], results[3])
    """
    script = tmp_path / "threads.py"
    script.write_text(PRELUDE + textwrap.dedent(body))
    before = plain(script)
    recording = observe(script)
    assert told(recording.output) == told(before)
    assert recording.of(ProbeFailed) == []


def test_all_patches_come_off_again(observe, tmp_path):
    body = """
    import torch.utils.data
    from traindx.probes.session import Session
    owners = (torch, torch.Tensor, nn.Module, F, torch.optim.Optimizer, torch.autograd, torch.utils.data.DataLoader, random, np.random)
    Session.current.close()
    left = [f"{o.__name__}.{n}" for o in owners for n, v in list(vars(o).items())
            if type(v) is type(train) and "traindx" in v.__code__.co_filename]
    print("LEFT", left, "write" in vars(sys.stdout), Session.current)
    train(nn.Linear(8, 1), batches(3))
    """
    script = tmp_path / "off.py"
    script.write_text(PRELUDE + textwrap.dedent(body))
    assert "LEFT [] False None" in observe(script).output


def test_real_run_returns_the_status_and_the_output(tmp_path):
    script = tmp_path / "exit.py"
    script.write_text(PRELUDE + "train(nn.Linear(8, 1), batches(3))\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(7)\n")
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "traindx", "run", str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert "out" in done.stdout and "err" in done.stderr and time.monotonic() - began < 120
