# SPDX-License-Identifier: Apache-2.0
"""Histograms of integers, which torch computes on GPUs alone: mixtures of experts count by them. Here beside their definition."""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import needs_gpu
from torch import nn


class Counts(nn.Module):
    def __init__(self, bins: int, low: int, high: int) -> None:
        super().__init__()
        self.limits = (bins, low, high)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x.float(), *self.limits)


def _defined(x: torch.Tensor, bins: int, low: int, high: int) -> torch.Tensor:
    counted = [0] * bins
    for value in x.flatten().tolist():
        if low <= value <= high:
            counted[min((value - low) * bins // (high - low), bins - 1)] += 1
    return torch.tensor(counted).to(x.dtype)


def _of_integers(model: Counts, x: torch.Tensor) -> torch.export.ExportedProgram:
    """What export on a GPU gives: torch refuses to trace it elsewhere."""
    program = torch.export.export(model, (x,))
    (histogram,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.histc.default)
    (given,) = program.graph.find_nodes(op="placeholder")
    histogram.args = (given, *histogram.args[1:])
    with histogram.meta["val"].fake_mode:
        histogram.meta["val"] = histogram.meta["val"].to(x.dtype)
    program.graph.eliminate_dead_code()
    return program


_LIMITS = [(8, 0, 7), (5, -3, 3), (7, 0, 100), (1, 0, 1), (3, 2, 9), (64, 0, 63)]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("limits", _LIMITS, ids=str)
def test_integers_are_counted(dtype: torch.dtype, limits: tuple[int, int, int]) -> None:
    draw = torch.Generator().manual_seed(5)
    x = torch.randint(0 if dtype is torch.uint8 else -9, 110, (4, 60), generator=draw).to(dtype)
    x[:, ::2] %= 10
    counted = ingot.build(_of_integers(Counts(*limits), x))(x)
    expected = _defined(x, *limits)
    assert counted.dtype == dtype
    assert counted.tolist() == expected.tolist()


def test_limits_of_the_data_are_left_to_torch() -> None:
    """Whose kernels for the host refuse them."""
    x = torch.arange(6, dtype=torch.int32)
    with pytest.raises(ingot.UserError, match="INGOT-U020"):
        ingot.build(_of_integers(Counts(4, 0, 0), x))


@needs_gpu
@pytest.mark.parametrize("limits", _LIMITS, ids=str)
def test_as_on_gpus(limits: tuple[int, int, int]) -> None:
    x = torch.randint(-9, 110, (240,), dtype=torch.int32, device="cuda")
    compiled = torch.compile(lambda x: torch.histc(x, *limits), backend="ingot", dynamic=False)
    assert torch.equal(compiled(x), torch.histc(x, *limits))
    assert not ingot.report(compiled).fallbacks
