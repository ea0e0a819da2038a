# SPDX-License-Identifier: Apache-2.0
"""Quantized and dequantized numbers, written as PT2E writes them: an engine's are torch's own."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from small_models import Function


def _forms() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    import torch.ao.quantization.fx._decomposed

    ops = torch.ops.quantized_decomposed
    scales, zeros = torch.tensor([0.1, 0.02, 0.3]), torch.tensor([3, -7, 0])
    signed = (-128, 127, torch.int8)

    def tensors(x: torch.Tensor) -> torch.Tensor:
        scale, zero = x.abs().amax() / 100, torch.zeros((), dtype=torch.int64) + 5
        numbers = ops.quantize_per_tensor.tensor(x, scale, zero, *signed)
        return ops.dequantize_per_tensor.tensor(numbers, scale, zero, *signed)

    def channels(x: torch.Tensor) -> torch.Tensor:
        numbers = ops.quantize_per_channel.default(x, scales, zeros, 1, *signed)
        return ops.dequantize_per_channel.default(numbers, scales, zeros, 1, *signed)

    def wide(x: torch.Tensor) -> torch.Tensor:
        how = (0.001, 0, -32768, 32767, torch.int16)
        return ops.dequantize_per_tensor.default(ops.quantize_per_tensor.default(x, *how), *how)

    def halves(x: torch.Tensor) -> torch.Tensor:
        how = (0.05, 120, 0, 255, torch.uint8)
        numbers = ops.quantize_per_tensor.default(x.to(torch.bfloat16), *how)
        return ops.dequantize_per_tensor.default(numbers, *how, out_dtype=torch.float16)

    def limited(x: torch.Tensor) -> torch.Tensor:
        return ops.quantize_per_tensor.default(x, 0.01, 10, 3, 99, torch.uint8)

    return {"tensors": tensors, "channels": channels, "wide": wide, "halves": halves, "limited": limited}


@pytest.mark.parametrize("form", ["tensors", "channels", "wide", "halves", "limited"])
def test_numbers_are_those_of_torch(form: str) -> None:
    module = Function(_forms()[form])
    x = torch.randn(4, 3, 50, generator=torch.Generator().manual_seed(1)) * 3
    x[0, 0, :6] = torch.tensor([0.0, -0.0, 1e30, -1e30, 0.05, 0.15])
    compiled = ingot.compile(module, inputs=[x], require_full_compilation=True)
    torch.testing.assert_close(compiled(x), module(x), rtol=0, atol=1e-3 if form == "halves" else 0)
