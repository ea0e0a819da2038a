# SPDX-License-Identifier: Apache-2.0
"""ingot.compile(model, ir=...): every way in leads to the same module; ingot.fx.compile."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from small_models import InParts, mlp
from torch import nn


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


class Sizes(nn.Module):
    """Methods, functions, attributes and a size, as torch.fx records them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8))

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        z = torch.relu(self.linear(x)).view(x.size(0), 2, -1)
        return {"z": z.transpose(1, 2), "sum": (x * self.scale).sum(-1)}


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize("ir", ["default", "dynamo", "ts", "torchscript", "fx", "torch_compile"])
def test_each_ir(ir: str) -> None:
    model, x = mlp(), torch.randn(3, 8)
    compiled = ingot.compile(model, ir=ir, inputs=[x], enabled_precisions={torch.float32})
    assert_accurate(compiled(x), model(x), golden(model, [x]))
    assert not ingot.report(compiled).fallbacks


@pytest.mark.parametrize("ir", ["fx", "default", "dynamo"])
def test_graphs_of_fx(ir: str) -> None:
    model = Sizes()
    traced = torch.fx.symbolic_trace(model)
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(9, 8))
    compiled = ingot.compile(traced, ir=ir, inputs=[rows])
    assert set(compiled.state_dict()) == set(model.state_dict())
    for size in (1, 5, 9):
        x = torch.randn(size, 8)
        for key, value in compiled(x).items():
            assert_accurate(value, model(x)[key], copy.deepcopy(model).double()(x.double())[key])
    new = copy.deepcopy(model)
    new.linear.weight.mul_(2)
    compiled.refit(new)
    assert_accurate(compiled(x)["z"], new(x)["z"], copy.deepcopy(new).double()(x.double())["z"])


def test_a_module_traced_by_fx_keeps_its_lines() -> None:
    model, x = InParts(counts=False), torch.randn(3, 4)
    compiled = ingot.fx.compile(model, inputs=[x])
    assert_accurate(compiled(x), model(x), golden(model, [x]))
    (left,) = compiled.report.fallbacks
    assert "small_models.py:" in left.source


@pytest.mark.parametrize(
    ("model", "ir", "says"),
    [
        (mlp(), "onnx", 'ir is one of "default", "dynamo"'),
        (mlp(), None, "ir is one of"),
        (Choosing(), "fx", "torch.fx cannot trace the model"),
        (torch.relu, "fx", 'ir="fx" takes a torch.fx.GraphModule'),
        (torch.relu, "default", "a model is a torch.nn.Module"),
    ],
)
def test_bad_combinations(model: Any, ir: Any, says: str) -> None:
    with pytest.raises(ingot.UserError, match=says):
        ingot.compile(model, ir=ir, inputs=[torch.randn(3, 8)])
