# SPDX-License-Identifier: Apache-2.0
"""torch._scaled_mm and torch._weight_int8pack_mm: scales of whole operands, of rows and of columns, where there is one of them too."""

from __future__ import annotations

from typing import Any

import ingot
import pytest
import torch
from torch import nn

DEPTH = 64
SCALES = ["scalar", "one", "one_by_one", "rows"]


class ScaledProduct(nn.Module):
    def __init__(self, columns: int, scales: str, dtype: torch.dtype, has_bias: bool) -> None:
        super().__init__()
        self.register_buffer("weight", (torch.randn(columns, DEPTH) * 4).to(torch.float8_e4m3fn))
        self.register_buffer("bias", torch.randn(columns).to(dtype) if has_bias else None)
        self.register_buffer("weight_scale", self.scale(scales, (1, columns)))
        self.scales, self.dtype = scales, dtype

    @staticmethod
    def scale(kind: str, each: tuple[int, int]) -> torch.Tensor:
        shapes = {"scalar": (), "one": (1,), "one_by_one": (1, 1), "rows": each}
        return torch.rand(shapes[kind]) + 0.5

    def forward(self, x: torch.Tensor, x_scale: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(
            x.to(torch.float8_e4m3fn),
            self.weight.t(),
            x_scale,
            self.weight_scale,
            self.bias,
            out_dtype=self.dtype,
        )

    def exact(self, x: torch.Tensor, x_scale: torch.Tensor) -> torch.Tensor:
        product = x.to(torch.float8_e4m3fn).double() @ self.weight.double().t()
        result = product * x_scale.double() * self.weight_scale.double()
        return result if self.bias is None else result + self.bias.double()


class PackedProduct(nn.Module):
    def __init__(self, columns: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (columns, DEPTH), dtype=torch.int8))
        self.register_buffer("scales", (torch.rand(columns) / 100).to(dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch._weight_int8pack_mm(x, self.weight, self.scales)

    def exact(self, x: torch.Tensor) -> torch.Tensor:
        return (x.double() @ self.weight.double().t()) * self.scales.double()


def check(model: Any, *inputs: torch.Tensor) -> None:
    torch_result, exact = model(*inputs), model.exact(*inputs)
    result = ingot.build(torch.export.export(model, inputs))(*inputs)
    assert result.dtype is torch_result.dtype
    assert result.shape == torch_result.shape
    steps = 4 if result.dtype is torch.bfloat16 else 64  # of the largest numbers that products add up
    allowed = steps * torch.finfo(result.dtype).eps * max(1.0, exact.abs().max().item())
    assert (result.double() - exact).abs().max() <= allowed


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 48), (1, 1), (5, 1), (5, 48)])
def test_scaled_mm(rows: int, columns: int, scales: str) -> None:
    torch.manual_seed(rows)
    dtype = torch.bfloat16 if rows == 1 else torch.float32
    model = ScaledProduct(columns, scales, dtype, has_bias=columns == 48).eval()
    check(model, torch.randn(rows, DEPTH), ScaledProduct.scale(scales, (rows, 1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(1, 48), (5, 1), (5, 48)])
def test_products_of_bytes_with_scales_of_columns(rows: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(rows)
    check(PackedProduct(columns, dtype).eval(), torch.randn(rows, DEPTH).to(dtype))


def test_a_matrix_that_is_not_transposed() -> None:
    """Permuting its dims to where they are leaves the matrix as it is."""

    class Product(nn.Module):
        def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            one = torch.ones(())
            columns = weight.to(torch.float8_e4m3fn).t().contiguous().t().permute(0, 1)
            return torch._scaled_mm(x.to(torch.float8_e4m3fn), columns, one, one, out_dtype=torch.float32)

        def exact(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return x.to(torch.float8_e4m3fn).double() @ weight.to(torch.float8_e4m3fn).double()

    torch.manual_seed(0)
    check(Product().eval(), torch.randn(5, 32), torch.randn(32, 32))
