"""``python -m traindx.gauges.tools.devices [SKIP ...]``: what torch can do here, one JSON line a fact, written as it is known.

Runs in a process of its own: a driver that crashes or hangs ends this process only, and the lines that were written say
which device it was at. Devices named in SKIP (``cuda:0``) are listed and not tried.
"""
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any


def main(skip: list[str]) -> int:
    try:
        import torch
    except BaseException as problem:
        _say("torch", {"error": f"{type(problem).__name__}: {problem}"[:500]})
        return 0
    from traindx.probes.machine import torch_facts
    facts = torch_facts()
    _say("torch", facts)
    available, why = _available(torch)
    _say("torch", {**facts, "available": available, "why_no_device": why, "architectures": _architectures(torch)})
    for where, device in _devices(torch, available):
        _say("device", {"where": where, **device})
        if where not in skip:
            _say("proof", {"where": where, **_prove(torch, where)})
    return 0


def _say(what: str, fields: dict[str, Any]) -> None:
    os.write(1, (json.dumps({"what": what, **fields}) + "\n").encode())


def _available(torch: Any) -> tuple[list[str], str | None]:
    found, why = [], None
    for name in ("cuda", "mps", "xpu"):
        module = torch.backends.mps if name == "mps" else getattr(torch, name, None)
        try:
            if module is not None and module.is_available():
                found.append(name)
        except Exception as problem:
            why = f"{name}: {problem}"[:300]
    if "cuda" not in found and torch.version.cuda and why is None:
        try:
            torch.cuda.init()
        except Exception as problem:
            why = str(problem)[:300]
    return found, why


def _architectures(torch: Any) -> list[str]:
    try:
        return list(torch.cuda.get_arch_list())
    except Exception:
        return []


def _devices(torch: Any, available: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "cpu", {"kind": "cpu", "index": 0}
    for name in available:
        if name == "mps":
            yield "mps", {"kind": "mps", "index": 0, "name": "Apple GPU", "memory_bytes": _mps_memory(torch)}
            continue
        module = getattr(torch, name)
        for index in range(module.device_count()):
            yield f"{name}:{index}", {"index": index, **_properties(torch, module, name, index)}


def _mps_memory(torch: Any) -> int | None:
    try:
        return int(torch.mps.recommended_max_memory())
    except Exception:
        return None


def _properties(torch: Any, module: Any, name: str, index: int) -> dict[str, Any]:
    kind = "rocm" if name == "cuda" and getattr(torch.version, "hip", None) else name
    try:
        facts = module.get_device_properties(index)
    except Exception as problem:
        return {"kind": kind, "name": f"({problem})"[:100]}
    capability = None
    if kind == "cuda":
        capability = f"{facts.major}.{facts.minor}"
    elif kind == "rocm":
        capability = str(getattr(facts, "gcnArchName", "")).split(":")[0] or None
    return {"kind": kind, "name": facts.name, "memory_bytes": facts.total_memory, "capability": capability}


def _prove(torch: Any, where: str) -> dict[str, Any]:
    """The only evidence that all of it works: random numbers, softmax, forward, backward, a step that moves the weights."""
    began, proof = time.perf_counter(), {"softmax_sums": False, "step": False}
    try:
        device = torch.device(where)
        x = torch.randn(8, 16, device=device)
        sums = torch.softmax(x, dim=-1).sum(-1)
        proof["softmax_sums"] = bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-5))
        model = torch.nn.Linear(16, 4).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        before = model.weight.detach().clone()
        loss = torch.nn.functional.cross_entropy(model(x), torch.arange(8, device=device) % 4)
        loss.backward()
        optimizer.step()
        moved = bool((model.weight != before).any())
        proof["step"] = moved and bool(torch.isfinite(model.weight).all()) and bool(torch.isfinite(loss))
    except Exception as problem:
        return {**proof, "how": "raised", "error": f"{type(problem).__name__}: {problem}"[:500]}
    return {**proof, "how": "done", "seconds": round(time.perf_counter() - began, 4)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
