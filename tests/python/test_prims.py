# SPDX-License-Identifier: Apache-2.0
"""torch's primitive operators, which traces by torch._refs and other compilers leave behind, and less common ATen ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate
from small_models import Function

_prims = torch.ops.prims
_WHOLE = {"require_full_compilation": True, "check_speed": False}
_UNARY = ("abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
          "floor", "neg", "reciprocal", "round", "sign", "sin", "sinh", "tan", "tanh", "trunc")  # fmt: skip
_POSITIVE = ("acosh", "log", "log10", "log1p", "log2", "rsqrt", "sqrt")
_BINARY = ("add", "atan2", "div", "eq", "ge", "gt", "le", "lt", "maximum", "minimum", "mul", "ne", "sub")
_REDUCTIONS = ("amax", "amin", "prod", "sum")


def _check(function: Callable[..., Any], *args: torch.Tensor) -> None:
    model = Function(function)
    run = ingot.compile(torch.export.export(model, args), **_WHOLE)
    wide = [arg.double() if arg.is_floating_point() else arg for arg in args]
    actual, eager, exact = run(*args), model(*args), model(*wide)
    if not isinstance(eager, (tuple, list)):
        actual, eager, exact = (actual,), (eager,), (exact,)
    for ours, theirs, reference in zip(actual, eager, exact, strict=True):
        assert_accurate(ours, theirs, reference)


def _random(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 1.8 - 0.9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_elementwise(dtype: torch.dtype) -> None:
    def all_of_them(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        results = [getattr(_prims, name).default(x) for name in _UNARY]
        results += [getattr(_prims, name).default(y) for name in _POSITIVE]
        results += [getattr(_prims, name).default(x, y) for name in _BINARY]
        return [*results, _prims.pow.default(y, x), _prims.where.default(x > 0, x, y)]

    _check(all_of_them, _random(3, 4).to(dtype), (_random(3, 4) + 2).to(dtype))


def test_integers() -> None:
    def all_of_them(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        names = (
            "add",
            "div",
            "mul",
            "sub",
            "maximum",
            "minimum",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "eq",
            "lt",
        )
        results = [getattr(_prims, name).default(x, y) for name in names]
        return [*results, _prims.neg.default(x), _prims.abs.default(x), _prims.bitwise_not.default(x)]

    _check(all_of_them, torch.tensor([7, -7, 0, 5]), torch.tensor([2, 2, 3, -4]))


@pytest.mark.parametrize("name", _REDUCTIONS)
@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [0, 1, 2]], ids=str)
def test_reductions(name: str, dims: list[int]) -> None:
    _check(lambda x: getattr(_prims, name).default(x, dims), _random(2, 3, 4))


def test_views() -> None:
    _check(lambda x: _prims.broadcast_in_dim.default(x, [2, 3, 4], [1, 2]) * 2, _random(3, 4))
    _check(lambda x: _prims.broadcast_in_dim.default(x, [2, 3, 5], [0, 2]) * 2, _random(2, 1))
    _check(lambda x: _prims.broadcast_in_dim.default(x.sum(), [2, 3], []) * 2, _random(2, 1))
    _check(lambda x: _prims.transpose.default(x, [2, 0, 1]) + 1, _random(2, 3, 4))
    _check(lambda x: _prims.squeeze.default(x, [1]) + 1, _random(2, 1, 4))
    _check(lambda x: _prims.reshape.default(x, [4, 2]) + 1, _random(2, 4))


def test_creation() -> None:
    device = torch.device("cpu")

    def function(x: torch.Tensor) -> Any:
        counted = _prims.iota.default(
            4, start=2, step=3, dtype=torch.int64, device=device, requires_grad=False
        )
        filled = _prims.full.default([4], 1.5, dtype=torch.float32, device=device, requires_grad=False)
        return x + counted, x * filled

    _check(function, _random(4))


def test_what_torch_cannot_trace_runs_in_torch() -> None:
    """AOTAutograd has no functional form of a view of prims: the graph runs as it is, and the report says why."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return _prims.broadcast_in_dim.default(x, [2, 3, 4], [1, 2]) + 1

    torch._dynamo.reset()
    run = torch.compile(function, backend="ingot")
    x = _random(3, 4)
    torch.testing.assert_close(run(x), function(x))
    assert any("cannot trace" in node.reason for node in ingot.report(run).fallbacks)
    torch._dynamo.reset()
    run = torch.compile(function, backend="ingot", options={"require_full_compilation": True})
    with pytest.raises(Exception, match="INGOT-N001"):
        run(x)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_of_pairs(p: float) -> None:
    for rows in (0, 1, 2, 7):
        _check(lambda x: torch.ops.aten._pdist_forward.default(x, p), _random(rows, 5))
    _check(lambda x: torch.pdist(x.T.contiguous(), p), _random(4, 6))


def test_dropout_in_evaluation() -> None:
    _check(lambda x: torch.native_dropout(x, 0.5, False), _random(3, 4))


def test_strides() -> None:
    _check(lambda x: torch.as_strided(x * 2, (2, 2), (1, 2), 1), _random(3, 4))
    rows = torch.export.Dim("rows", min=2, max=64)
    model = Function(lambda x: torch.as_strided(x * 2, (2, 3), (4, 1), 1))
    program = torch.export.export(
        model, (_random(3, 4),), dynamic_shapes={"args": ({0: rows},)}, strict=False
    )
    run = ingot.compile(program, **_WHOLE)
    for count in (2, 3, 9):
        x = _random(count, 4)
        torch.testing.assert_close(run(x), model(x))
