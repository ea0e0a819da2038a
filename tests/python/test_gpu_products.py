# SPDX-License-Identifier: Apache-2.0
"""Linear layers of many rows on GPUs, of sizes at which blocks take one tile after another, against f64.

Without a GPU engines are built.
"""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import DEVICE, HAS_GPU, needs_nvrtc
from torch import nn

pytestmark = needs_nvrtc

# Rows, columns, depth. Predicted are, by their names, tiles that groups of warps have together or take in turns; rows
# and columns end within a tile.
_SIZES = {
    "192x192": (6200, 736, 768),
    "192x192_in_rounds": (6304, 3072, 768),
    "128x256": (2800, 3040, 4096),
    "128x192": (4096, 736, 1544),
    "192x128": (4090, 736, 776),
    "128x128": (2048, 1024, 256),
    "128x96": (4000, 384, 392),
    "128x64": (512, 2016, 2048),
    "turns_128x128": (500, 16384, 512),
    "turns_64x256": (300, 40000, 320),
    "groups": (4096, 1000, 768),
}


class Layer(nn.Module):
    def __init__(self, columns: int, depth: int, end: str) -> None:
        super().__init__()
        self.linear = nn.Linear(depth, columns, bias=end != "sum")
        self.end = end

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if self.end == "gelu":
            return nn.functional.gelu(y)
        return y if self.end == "bias" else y + residual


def _layer(size: str, end: str, dtype: torch.dtype) -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    rows, columns, depth = _SIZES[size]
    torch.manual_seed(11)
    model = Layer(columns, depth, end).eval().requires_grad_(False).to(dtype)
    return model, (torch.randn(rows, depth).to(dtype), torch.randn(rows, columns).to(dtype))


def _units(result: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> float:
    """The largest difference, in units in the last place of the element, those below 1 counted as 1."""
    units = torch.finfo(dtype).eps * exact.abs().clamp(min=1)
    return float(((result.double() - exact).abs() / units).max())


@pytest.mark.parametrize("end", ["bias", "gelu", "residual", "sum"])
@pytest.mark.parametrize("size", list(_SIZES))
def test_many_rows(size: str, end: str) -> None:
    dtype = torch.bfloat16 if end == "gelu" else torch.float16
    model, args = _layer(size, end, dtype)
    engine = ingot.build(torch.export.export(model, args), device=DEVICE)
    if not HAS_GPU:
        return
    x, residual = (value.cuda() for value in args)
    exact = model.double().cuda()(x.double(), residual.double())
    results = [engine(x, residual) for _ in range(3)]
    assert _units(results[0], exact, dtype) <= 2  # of the product and of what follows
    assert all(torch.equal(results[0], other) for other in results[1:])
    # Buffers that begin in the middle of 16 bytes take a loop of their own.
    beside = torch.empty(x.numel() + 1, dtype=dtype, device="cuda")[1:].view(x.shape).copy_(x)
    assert _units(engine(beside, residual), exact, dtype) <= 2
