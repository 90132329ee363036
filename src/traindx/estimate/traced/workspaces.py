"""What kernels take for themselves while they run, which no tensor of the program shows. CPU only; a GPU's are not modelled.

oneDNN copies what a convolution reads and writes into its own blocked layout. The sizes are those that the allocator records
(``tests/test_memory_traced.py`` holds them to it).
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BLOCKED = 16  # channels from which on an image is copied


class CannotFake(Exception):
    """What only the kernel knows cannot be told without running it."""


def workspace_of(name: str, args: Any) -> int:
    """Bytes beyond the outputs, at the highest, of the operation ``name``."""
    if name == "convolution":
        return _forward(args[0], args[1], args)
    if name == "convolution_backward":
        return _copy(args[0]) + _copy(args[1])
    return 0


def _forward(image: Tensor, weight: Tensor, args: Any) -> int:
    """Copies of what is read live beside the output in their layout, which then lives beside the output as it is asked for."""
    stride, padding, transposed = args[3], args[4], args[6]
    if image.is_contiguous(memory_format=torch.channels_last) and image.dim() == 4 and image.shape[1] > 1:
        return 0
    if transposed:
        return 2 * weight.shape[1] * _pixels(image) * _product(stride) * image.element_size()
    kernel = weight.shape[2:]
    pixels = 1
    for size, k, s, p in zip(image.shape[2:], kernel, stride, padding):
        pixels *= (size + 2 * p - k) // s + 1
    out = image.shape[0] * weight.shape[0] * pixels * image.element_size()
    return max(_copy(image) + weight.numel() * weight.element_size(), out)


def _copy(image: Tensor) -> int:
    """Images of few channels are read as they are in fp32, and filled up to eight in half precision."""
    if image.dim() != 4 or image.is_contiguous(memory_format=torch.channels_last):
        return 0
    channels = image.shape[1]
    if image.element_size() == 2:
        return _pixels(image) * (-(-channels // 8) * 8) * 2
    return image.numel() * image.element_size() if channels >= BLOCKED else 0


def _pixels(image: Tensor) -> int:
    return image.shape[0] * _product(image.shape[2:])


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= int(size)
    return product
