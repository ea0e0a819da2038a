# SPDX-License-Identifier: Apache-2.0
"""Sizes from floats that are rounded: of sizes, of integers of calls, and of data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch
from small_models import Function
from torch.export import Dim, export


def _of_data(x: torch.Tensor, k: int) -> torch.Tensor:
    count = math.ceil(x.max().item() * 2.5)
    torch._check(count >= 0)
    return x.new_ones(count, 2) * x[0] + k


def _twice(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(math.ceil(k / 3), 2) * x[0], torch.arange(2 * math.ceil(k / 3) + 1) * k


def _in_arithmetic(x: torch.Tensor, k: int) -> torch.Tensor:
    count = math.ceil(x.shape[0] * 0.3)
    return torch.arange(count * 2 + 1) * math.ceil(k / 2.5) + x.sum()


def _by_a_condition(x: torch.Tensor, k: int) -> torch.Tensor:
    rows = torch.zeros(math.ceil(x.shape[0] * 0.7), 3)
    return torch.cond(x.sum() > 4, lambda rows, x: rows + x[0], lambda rows, x: rows - x[1], (rows, x))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "a quotient": lambda x, k: torch.arange(math.ceil(k / 3)) + x[0],
    "a quotient of floats": lambda x, k: torch.arange(math.ceil(x.shape[0] / 2.5)) * k,
    "a quotient of sizes": lambda x, k: torch.ones(math.ceil(k / x.shape[0])) * x[0],
    "a product": lambda x, k: x.new_zeros(math.ceil(x.shape[0] * 0.75), 2).add(x[1]) * k,
    "of data": _of_data,
    "twice": _twice,
    "in arithmetic": _in_arithmetic,
    "by a condition": _by_a_condition,
}
# torch's guards exclude counts of 0 and 1.
CALLS = [(n, k) for n in (7, 10, 20) for k in (21, 30, 31)]


def _exported(function: Callable[..., Any]) -> torch.export.ExportedProgram:
    return export(
        Function(function), (torch.rand(8) * 2 + 0.1, 25), dynamic_shapes=(({0: Dim.AUTO}, Dim.AUTO),)
    )


def _check(run: Callable[..., Any], function: Callable[..., Any]) -> None:
    for n, k in CALLS:
        x = torch.rand(n, generator=torch.Generator().manual_seed(n)) * 2 + 0.1
        results, expected = run(x, k), function(x, k)
        one = isinstance(expected, torch.Tensor)
        for result, wanted in zip(*[[given] if one else given for given in (results, expected)], strict=True):
            assert result.shape == wanted.shape
            assert result.dtype is wanted.dtype
            torch.testing.assert_close(result, wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_single_engines(name: str) -> None:
    """Rounded as Python does: 0.3 of 10 is 3 in f64, and the exact product of 0.3 as it is stored is less."""
    _check(ingot.build(_exported(PROGRAMS[name])), PROGRAMS[name])


@pytest.mark.parametrize("way", ["whole", "aten.mul.Tensor", "aten.arange.default", "aten.ones.default"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_and_parts_in_torch(name: str, way: str) -> None:
    options: dict[str, Any] = {"torch_executed_ops": [way]}
    if way == "whole":  # in modules, torch reads floats from tensors
        options = {"require_full_compilation": name != "of data"}
    _check(ingot.compile(_exported(PROGRAMS[name]), check_speed=False, **options), PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_while_they_run(name: str) -> None:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        _check(torch.compile(Function(PROGRAMS[name]), backend="ingot", dynamic=True), PROGRAMS[name])


def test_sizes_that_come_out_negative_are_errors() -> None:
    engine = ingot.build(_exported(_of_data))
    with pytest.raises(ingot.UserError) as caught:
        engine(torch.full((4,), -8.0), 3)
    assert caught.value.code.startswith("INGOT-U")
