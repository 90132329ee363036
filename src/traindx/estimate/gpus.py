"""Memory of graphics cards by name, and sizes as people write them."""
from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from traindx.core.memory import GIB
from traindx.core.text import Text
from traindx.errors import UsageError

# as sold; where the maker counts in powers of 1024 (most boards) in GiB, else in bytes
_GIB = {
    "t4": 16, "p100": 16, "v100-16": 16, "v100-32": 32, "a10": 24, "a10g": 24, "l4": 24, "a30": 24, "a16": 16, "a40": 48,
    "a100-40": 40, "a100-80": 80, "h100": 80, "h800": 80, "a800": 80, "h20": 96, "l40": 48, "l40s": 48,
    "rtx-2080ti": 11, "rtx-3060": 12, "rtx-3080": 10, "rtx-3090": 24, "rtx-4060": 8, "rtx-4060ti-16": 16, "rtx-4070": 12,
    "rtx-4080": 16, "rtx-4090": 24, "rtx-5070": 12, "rtx-5080": 16, "rtx-5090": 32, "rtx-a4000": 16, "rtx-a5000": 24, "rtx-a6000": 48,
    "rtx-6000-ada": 48, "mi100": 32, "mi210": 64, "mi250": 128,
}
_BYTES = {"h200": 141_000_000_000, "b200": 180_000_000_000, "mi300x": 192_000_000_000, "gh200": 96_000_000_000}
MEMORY: dict[str, int] = {**{name: size * GIB for name, size in _GIB.items()}, **_BYTES}
_SAME = {"a100": "a100-80", "v100": "v100-16", "2080ti": "rtx-2080ti", "3060": "rtx-3060", "3080": "rtx-3080", "3090": "rtx-3090",
         "4060": "rtx-4060", "4070": "rtx-4070", "4080": "rtx-4080", "4090": "rtx-4090", "5070": "rtx-5070", "5080": "rtx-5080",
         "5090": "rtx-5090", "a6000": "rtx-a6000", "a5000": "rtx-a5000", "a4000": "rtx-a4000", "h100-80": "h100"}
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([KMGT]?I?B?)", re.IGNORECASE)

_UNKNOWN = Text("unknown GPU {name!r}. {near}Give a size (--gpu 24GB, --gpu 24GiB) or one of: {known}",
                "不认识的显卡 {name!r}。{near}请写大小（--gpu 24GB、--gpu 24GiB），或下列之一：{known}")
_NEAR = Text("Did you mean {near}? ", "你要写的是不是 {near}？")
_IMPOSSIBLE = Text("--gpu {name}: a card of {size} byte{size:|s} does not exist; sizes between 0.1 GB and 10 TB are understood",
                   "--gpu {name}：没有 {size} 字节的显卡；能理解 0.1 GB 到 10 TB 之间的大小")
# rule of thumb: CUDA context and the libraries' workspaces, which no tensor owns, then what rounding and holes cost the allocator
SET_ASIDE = 1.0e9
FRAGMENTATION = 0.03


@dataclass(frozen=True)
class Gpu:
    """``capacity`` is what tensors can use; ``total`` what the card is sold with. Bytes."""

    name: str
    total: int

    @property
    def capacity(self) -> int:
        return max(0, int((self.total - SET_ASIDE) * (1 - FRAGMENTATION)))


def gpu_named(words: str) -> Gpu:
    """A card by name (``a100-80``, ``RTX 4090``) or by size (``24GB``). Raises UsageError, with the nearest names."""
    key = re.sub(r"^(nvidia|geforce|tesla|amd|radeon|instinct)-", "", re.sub(r"[\s_]+", "-", words.strip().lower()))
    key = key.removeprefix("geforce-").removesuffix("gb").rstrip("-")
    key = _SAME.get(key, key)
    if key in MEMORY:
        return Gpu(key, MEMORY[key])
    size = size_of(words)
    if size is None:
        raise UsageError(_UNKNOWN.fill(name=words, near=_nearest(key), known=", ".join(sorted(MEMORY))))
    if not 1e8 <= size <= 1e13:
        raise UsageError(_IMPOSSIBLE.fill(name=words, size=f"{size:g}"))
    return Gpu(words.strip(), int(size))


def _nearest(key: str) -> Text:
    near = difflib.get_close_matches(key, [*MEMORY, *_SAME], n=3, cutoff=0.45)
    return _NEAR.fill(near=", ".join(near)) if near else Text("", "")


def size_of(words: str) -> float | None:
    """``24GB`` -> 24e9 bytes, ``24GiB`` -> 24 * 2**30; None where it is no size."""
    match = _SIZE.fullmatch(words.strip())
    if not match or match[2].upper() not in UNITS:
        return None
    return float(match[1]) * UNITS[match[2].upper()]
