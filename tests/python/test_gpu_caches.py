# SPDX-License-Identifier: Apache-2.0
"""Decoding on a GPU with caches that the model updates in place: the engine's attention reads them as they were before the run.
Skipped where there is no GPU."""

from __future__ import annotations

import copy

import ingot
import pytest
import torch
from gpu_targets import needs_gpu
from ingot.devices import architecture
from models.sequence import LlamaStep, initialize
from torch import nn
from torch.nn import functional

pytestmark = needs_gpu


class _Chunks(nn.Module):
    """Attention that takes some rows at a time, at any positions, with as many keys as `length`."""

    def __init__(self, rows: int, length: int = 300, heads: int = 2, size: int = 32) -> None:
        super().__init__()
        self.rows, self.heads, self.size = rows, heads, size
        self.qkv = nn.Linear(heads * size, 3 * heads * size)
        self.register_buffer("keys", torch.zeros(1, heads, length, size))
        self.register_buffer("values", torch.zeros(1, heads, length, size))

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x).view(1, self.rows, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, positions, key)
        self.values.index_copy_(2, positions, value)
        return functional.scaled_dot_product_attention(query, self.keys, self.values)


class _ReadTwice(_Chunks):
    """The new keys are an output too."""

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().forward(x, positions), self.keys * 2


def _engine(model: nn.Module, *args: torch.Tensor) -> ingot.Engine:
    return ingot.build(torch.export.export(model, args), device=f"cuda:{architecture()}")


def _error(got: torch.Tensor, exact: torch.Tensor) -> float:
    return float((got.double() - exact).square().mean().sqrt())


def _close(got: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = 1e-4 if expected.dtype == torch.float32 else 3e-2
    scale = float(expected.float().square().mean().sqrt())
    torch.testing.assert_close(got.float(), expected.float(), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_sequence_of_tokens(dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    model = initialize(LlamaStep(words=500, width=128, layers=3, heads=4, pairs=2, inner=256, length=96))
    model = model.eval().to(dtype)
    with torch.no_grad():
        engine = _engine(model, torch.tensor([[7]]), torch.tensor([0]))
        names = [step["name"] for step in engine.inspect()["main"]["steps"]]
        assert sum("cached_attention" in name for name in names) == 3
        exact_model, model = copy.deepcopy(model).double().cuda(), model.cuda()
        for position in (0, 1, 2, 50, 3, 95):
            args = torch.tensor([[position % 7]]).cuda(), torch.tensor([position]).cuda()
            exact, eager, got = exact_model(*args), model(*args), engine(*args)
            allowed = 2 * _error(eager, exact) + 1e-6 * float(exact.square().mean().sqrt())
            assert _error(got, exact) <= allowed


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("kind", [_Chunks, _ReadTwice])
def test_some_rows_at_a_time(rows: int, kind: type[nn.Module]) -> None:
    torch.manual_seed(6)
    model = kind(rows).eval().half()
    places = torch.randperm(300)
    with torch.no_grad():
        engine = _engine(model, torch.zeros(1, rows, 64).half(), torch.arange(rows))
        model = model.cuda()
        for turn in range(5):
            args = torch.randn(1, rows, 64).half().cuda(), places[turn * rows : (turn + 1) * rows].cuda()
            got, expected = engine(*args), model(*args)
            for a, b in zip(
                *((x if isinstance(x, (list, tuple)) else [x]) for x in (got, expected)), strict=True
            ):
                _close(a, b)


def test_positions_out_of_range_are_told() -> None:
    model = _Chunks(1).eval().half()
    with torch.no_grad():
        engine = _engine(model, torch.zeros(1, 1, 64).half(), torch.arange(1))
    x = torch.zeros(1, 1, 64).half().cuda()
    engine(x, torch.tensor([300]).cuda())
    with pytest.raises(ingot.UserError, match="INGOT-U310"):
        engine(x, torch.tensor([0]).cuda())
