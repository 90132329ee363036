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
        image, weight = args[:2]
        return _columns(image, weight, _pixels_out(image, weight, args)) if _unrolled(image, args[6]) else _forward(image, weight, args)
    if name == "convolution_backward":
        gradient, image, weight = args[:3]
        if _unrolled(image, args[7]):
            return _columns(image, weight, _pixels(gradient))
        filled = _filled(image) - image.numel() * image.element_size() if args[10][0] else 0  # its gradient, first of all in their layout
        return _copy(gradient) + max(_copy(image), filled)
    return 0


def _unrolled(image: Tensor, transposed: bool) -> bool:
    """Half precision on a CPU whose oneDNN does not have it: every patch of the image is written out."""
    if transposed or image.dim() != 4:
        return False
    if image.dtype is torch.bfloat16:
        return not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return image.dtype is torch.float16 and not torch.ops.mkldnn._is_mkldnn_fp16_supported()


def _columns(image: Tensor, weight: Tensor, pixels: int) -> int:
    return weight.shape[1] * _product(weight.shape[2:]) * pixels * image.element_size()


def _pixels_out(image: Tensor, weight: Tensor, args: Any) -> int:
    """Of a whole batch."""
    pixels = image.shape[0]
    for size, k, stride, padding, dilation in zip(image.shape[2:], weight.shape[2:], args[3], args[4], args[5]):
        pixels *= (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    return pixels


def _forward(image: Tensor, weight: Tensor, args: Any) -> int:
    """Copies of what is read live beside the output in their layout, which then lives beside the output as it is asked for."""
    stride, transposed = args[3], args[6]
    if image.is_contiguous(memory_format=torch.channels_last) and image.dim() == 4 and image.shape[1] > 1:
        return 0
    if transposed:
        return 2 * weight.shape[1] * _pixels(image) * _product(stride) * image.element_size()
    out = weight.shape[0] * _pixels_out(image, weight, args) * image.element_size()
    return max(_copy(image) + weight.numel() * weight.element_size(), out)


def _copy(image: Tensor) -> int:
    """Images of few channels are read as they are in fp32, and filled up to eight in half precision."""
    if image.dim() != 4 or image.is_contiguous(memory_format=torch.channels_last):
        return 0
    if image.element_size() == 2:
        return _filled(image)
    return image.numel() * image.element_size() if image.shape[1] >= BLOCKED else 0


def _filled(image: Tensor) -> int:
    """Bytes with the channels filled up to a multiple of eight."""
    return _pixels(image) * (-(-image.shape[1] // 8) * 8) * image.element_size()


def _pixels(image: Tensor) -> int:
    return image.shape[0] * _product(image.shape[2:])


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= int(size)
    return product
