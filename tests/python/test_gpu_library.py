# SPDX-License-Identifier: Apache-2.0
"""Products by cuBLASLt in engines: chosen by the tactic file, in graphs, with other sizes, and where the library is missing."""

from __future__ import annotations

from pathlib import Path

import ingot
import pytest
import torch
from gpu_tactics import built_with, can_open, kernels_of, loaded_without
from gpu_targets import HAS_GPU, needs_nvrtc
from torch import nn

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(
        not HAS_GPU or not can_open("INGOT_CUBLASLT", "libcublasLt.so.13", "libcublasLt.so.12"),
        reason="there is no GPU, or no cuBLASLt",
    ),
]


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(256, 512), nn.Linear(512, 256, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x)))


def _by_library(folder: Path, model: nn.Module, x: torch.Tensor) -> ingot.Engine:
    """An engine whose products that cuBLASLt can do are done by it."""
    rows = ({0: torch.export.Dim("rows", min=1, max=4096)},)
    program = torch.export.export(model, (x,), dynamic_shapes=rows)
    return built_with("cuBLASLt, choice 1", program, folder, "linear", without="relu")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_is_as_torch_says_with_the_same_bits_each_time(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    model = Layers().eval().requires_grad_(False)
    engine = _by_library(tmp_path, model.to(dtype), torch.randn(64, 256, dtype=dtype))
    assert kernels_of(engine, "cuBLASLt")
    for rows in (1, 64, 777, 64):
        x = torch.randn(rows, 256, dtype=dtype)
        exact = model.double()(x.double())
        model.to(dtype)
        results = [engine(x.cuda()).cpu() for _ in range(4)]
        assert all(torch.equal(results[0], other) for other in results[1:])
        tolerance = 8 * torch.finfo(dtype).eps
        torch.testing.assert_close(results[0].double(), exact, rtol=tolerance, atol=4 * tolerance)
        unaligned = torch.empty(rows * 256 + 1, dtype=dtype, device="cuda")[1:].view(rows, 256).copy_(x)
        torch.testing.assert_close(
            engine(unaligned).cpu().double(), exact, rtol=tolerance, atol=4 * tolerance
        )


def test_an_engine_says_that_the_library_is_missing(tmp_path: Path) -> None:
    x = torch.randn(64, 256, dtype=torch.float16)
    engine = _by_library(tmp_path, Layers().eval().requires_grad_(False).half(), x)
    run = loaded_without("INGOT_CUBLASLT", engine, tmp_path)
    assert run.returncode != 0
    assert "INGOT-D405" in run.stderr
    assert "cuBLASLt" in run.stderr
