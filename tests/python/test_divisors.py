# SPDX-License-Identifier: Apache-2.0
"""Integers of calls and of data that divide others, or grow beyond 64 bits: as in Python, or an error that says so; the process goes on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from small_models import Function
from torch.export import Dim

X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
DIVISIONS = {
    "floor": operator.floordiv,
    "rest": operator.mod,
    "quotient": operator.truediv,
    "quotient of a float": lambda a, b: (a + 0.5) / b,
}
ZERO = r"INGOT-U312.*here .* is 0|INGOT-U31\d.*division by zero"


def exported(function: Callable, *values: Any) -> torch.export.ExportedProgram:
    shapes = tuple({0: Dim.DYNAMIC} if isinstance(value, torch.Tensor) else Dim.DYNAMIC for value in values)
    return torch.export.export(Function(function), values, dynamic_shapes={"args": shapes})


@pytest.fixture(params=["program", "file"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., ingot.Engine]:
    def built(program: torch.export.ExportedProgram, **options: Any) -> ingot.Engine:
        if request.param == "program":
            return ingot.build(program, **options)
        torch.export.save(program, tmp_path / "model.pt2")
        return ingot.build(tmp_path / "model.pt2", **options)

    return built


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", DIVISIONS)
def test_by_an_integer_of_the_call(name: str, level: int, build: Callable[..., ingot.Engine]) -> None:
    function = lambda x, k: (x + DIVISIONS[name](100, k), DIVISIONS[name](x.shape[0] - 9, k))  # noqa: E731
    engine = build(exported(function, X, 3), optimization_level=level)
    for k in (3, -3, 1, -1, 7, -(1 << 63), (1 << 63) - 1):
        torch.testing.assert_close(engine(X, k), function(X, k))
    with pytest.raises(ZeroDivisionError):
        function(X, 0)
    with pytest.raises(ingot.UserError, match=ZERO):
        engine(X, 0)
    torch.testing.assert_close(engine(X, 5), function(X, 5))


ONCE: dict[str, Callable] = {
    "ingot.compile": lambda function: ingot.compile(function, inputs=[X]),
    "torch.compile": lambda function: torch.compile(function, backend="ingot", fullgraph=True),
}


# Under torch.compile torch multiplies by the reciprocal of a float's divisor, an infinity, with other backends too.
@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("way", ONCE)
def test_by_a_size_of_data(way: str, name: str) -> None:
    function = Function(lambda x: x * DIVISIONS[name](100, x.nonzero().shape[0]))
    compiled = ONCE[way](function)
    for x in (X, X.relu()):
        torch.testing.assert_close(compiled(x), function(x))
    if (way, name) == ("torch.compile", "quotient of a float"):
        assert compiled(X * 0).isnan().all()
    else:
        with pytest.raises(ingot.UserError, match=ZERO):
            compiled(X * 0)
    torch.testing.assert_close(compiled(X), function(X))


BEYOND = {
    "sum": (lambda k: k + (1 << 62), (1 << 62, (1 << 63) - 1)),
    "difference": (lambda k: k - 5, (-(1 << 63), 4 - (1 << 63))),
    "product": (lambda k: k * k * 3, (1 << 32, -(1 << 40), -(1 << 63))),
    "negative": (lambda k: -k, (-(1 << 63),)),
    "quotient": (lambda k: k // -1, (-(1 << 63),)),
}


@pytest.mark.parametrize("name", BEYOND)
def test_integers_beyond_64_bits(name: str, build: Callable[..., ingot.Engine]) -> None:
    of_integer, beyond = BEYOND[name]
    function = lambda x, k: (x + 1, of_integer(k))  # noqa: E731
    engine = build(exported(function, X, 3))
    for k in (3, -3, 0, 1 << 30, -(1 << 30)):
        torch.testing.assert_close(engine(X, k), function(X, k), rtol=0, atol=0)
    for k in beyond:
        assert not -(1 << 63) <= of_integer(k) < 1 << 63
        with pytest.raises(ingot.UserError, match=r"INGOT-U101.*an integer"):
            engine(X, k)
    assert engine(X, 3)[1] == of_integer(3)
