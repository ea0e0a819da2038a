# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 and 8 bits on GPUs: results are right. Without a GPU their kernels are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate
from gpu_targets import needs_gpu, needs_nvrtc

pytest.importorskip("torchao")  # which makes their weights

from narrow_layers import DEPTH, FORMATS, exact, layer
from torchao.utils import unwrap_tensor_subclass

pytestmark = needs_nvrtc


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def inputs(rows: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(rows, DEPTH, generator=torch.Generator().manual_seed(rows)).to(dtype)


def built(model: Any, x: torch.Tensor, device: str) -> Any:
    return ingot.build(torch.export.export(unwrap_tensor_subclass(model), (x,)), device=device)


@pytest.mark.parametrize("device", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", FORMATS)
def test_kernels_are_compiled(name: str, device: str) -> None:
    for rows in (1, 16):
        engine = built(layer(FORMATS[name], torch.float16, bias=True), inputs(rows, torch.float16), device)
        assert engine.inspect()["target"].startswith(device)


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 4, 5, 17])
@pytest.mark.parametrize("name", FORMATS)
def test_products_are_right(name: str, rows: int, dtype: torch.dtype) -> None:
    for bias in (False, True):
        model, x = layer(FORMATS[name], dtype, bias=bias), inputs(rows, dtype)
        result = built(model, x, "cuda")(x.cuda())
        assert_accurate(torch.as_tensor(result).cpu(), model(x), exact(FORMATS[name], model, x))


@needs_gpu
def test_fp8_codes_are_converted_exactly() -> None:
    class Layer(torch.nn.Module):
        def __init__(self, dtype: torch.dtype) -> None:
            super().__init__()
            codes = torch.arange(256).to(torch.uint8).view(dtype)
            self.register_buffer("weight", codes.repeat(16, 1))
            self.register_buffer("scale", torch.ones(16, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, self.weight.float() * self.scale)

    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        model = Layer(dtype).eval()
        finite = model.weight[0].float().isfinite()
        model.weight = torch.where(finite, model.weight.float(), 0.0).to(dtype)
        engine = built(model, torch.zeros(1, 256), "cuda")
        for row in torch.eye(256)[::5]:
            x = row[None]
            assert torch.equal(torch.as_tensor(engine(x.cuda())).cpu(), model(x))
