# SPDX-License-Identifier: Apache-2.0
"""Writes into results of `unbind`, and into tensors that these share memory with, for sizes that vary."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch
from torch import nn
from torch.export import Dim


class _Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


def _all_of_a_copy(_: Any, x: torch.Tensor) -> Any:
    return [column.relu_() for column in x.clone().unbind(1)]


def _one_of_three(_: Any, x: torch.Tensor) -> Any:
    left, middle, right = (x * 2).unbind(1)
    left.relu_()
    return left + middle * right


def _the_tensor_and_its_columns(_: Any, x: torch.Tensor) -> Any:
    y = x * 2
    y.unbind(1)[1].relu_()
    y.unbind(-1)[2].add_(y[:, 0])
    return y, y.sum(0)


def _an_argument(_: Any, x: torch.Tensor) -> Any:
    x.unbind(1)[0].mul_(3)
    return x * 2, x.unbind(1)[0]


def _a_buffer(model: Any, x: torch.Tensor) -> Any:
    model.total.add_(x.unbind(1)[0].sum())
    model.total.unbind(0)[1].fill_(5.0)
    return model.total * x


@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.mul"], "min_block_size": 1}])
@pytest.mark.parametrize(
    "function", [_all_of_a_copy, _one_of_three, _the_tensor_and_its_columns, _an_argument, _a_buffer]
)
def test_rows_vary(function: Callable[..., Any], options: dict[str, Any]) -> None:
    model = _Model(function)
    rows = ({0: Dim("rows", min=1, max=50)},)
    program = torch.export.export(copy.deepcopy(model), (torch.randn(4, 3),), dynamic_shapes=rows)
    compiled = ingot.compile(program, **options)
    for size in (4, 7, 1, 50):
        x = torch.randn(size, 3)
        own = x.clone()
        torch.testing.assert_close(compiled(own), model(x))
        torch.testing.assert_close(own, x)
