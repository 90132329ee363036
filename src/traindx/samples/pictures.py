"""Samples as pictures that a page can hold: PNG without an image library, curves as SVG."""
from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from traindx.samples.load import Array

SIDE = 96  # small pictures are enlarged to about that, pixel by pixel


def png(pixels: Array) -> bytes:
    """A PNG file of uint8 pixels [H, W] (grey), [H, W, 3] or [H, W, 4]."""
    height, width = pixels.shape[:2]
    colour = {2: 0, 3: {3: 2, 4: 6}.get(pixels.shape[-1], 0)}[pixels.ndim]
    rows = pixels.reshape(height, -1)
    data = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()  # filter 0 before every row
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(data, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels_of(sample: Array) -> Array:
    """uint8 [H, W], [H, W, 3] or [H, W, 4] of one sample [H, W], [C, H, W] or [H, W, C]: its lowest value black, its highest white."""
    values = np.nan_to_num(sample.astype(np.float64))
    if values.ndim == 3:
        values = np.moveaxis(values, 0, -1) if values.shape[0] in (1, 3, 4) and values.shape[2] not in (1, 3, 4) else values
        values = values[..., 0] if values.shape[-1] == 1 else values if values.shape[-1] in (3, 4) else values.mean(axis=-1)
    low, high = float(values.min()), float(values.max())
    if sample.dtype == np.uint8:
        low, high = 0.0, 255.0
    grey = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return np.clip(np.rint(grey * 255), 0, 255).astype(np.uint8)


def image(sample: Array) -> str:
    """An ``<img>`` with the picture inside."""
    pixels = pixels_of(sample)
    height, width = pixels.shape[:2]
    scale = max(1, round(SIDE / max(height, width)))
    data = base64.b64encode(png(pixels)).decode()
    return (f'<img src="data:image/png;base64,{data}" width="{width * scale}" height="{height * scale}" alt="" '
            'style="image-rendering:pixelated;max-width:100%">')


def wave(sample: Array, width: int = 320, height: int = 64) -> str:
    """Curves of one sample [T] or [C, T], one above the other."""
    channels = np.nan_to_num(np.atleast_2d(sample).astype(np.float64))[:4]
    lines = "".join(_line(channel, width, height, place * height) for place, channel in enumerate(channels))
    return f'<svg viewBox="0 0 {width} {height * len(channels)}" style="max-width:{width}px">{lines}</svg>'


def _line(values: Array, width: int, height: int, top: int) -> str:
    if len(values) > 2 * width:  # lowest and highest of each column
        parts = np.array_split(values, width)
        values = np.array([edge for part in parts for edge in (part.min(), part.max())])
    low, high = float(values.min()), float(values.max())
    y = top + 2 + (height - 4) * (1 - (values - low) / (high - low if high > low else 1))
    x = np.linspace(0, width, len(values))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
    return f'<polyline class="curve" points="{points}"/>'
