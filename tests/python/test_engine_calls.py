# SPDX-License-Identifier: Apache-2.0
"""Calls of engines by position, most of which go straight to C++: each kind of argument and result, each call once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from torch import nn

X = torch.arange(8.0).reshape(2, 4)
RESULTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "a tensor": lambda y: y,
    "a tuple": lambda y: (y, y + 1),
    "a tuple of one": lambda y: (y,),
    "a tuple with a number": lambda y: (y, 3),
    "a list": lambda y: [y, y + 1],
    "a list of one": lambda y: [y],
    "tuples in a tuple": lambda y: ((y, y + 1), (y + 2,)),
    "a dict": lambda y: {"b": y, "a": y + 1},
    "an OrderedDict": lambda y: OrderedDict([("b", y), ("a", y + 1)]),
}


class Returning(nn.Module):
    def __init__(self, result: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.result = result

    def forward(self, x: torch.Tensor) -> Any:
        return self.result(torch.relu(x - 3))


class Counting(nn.Module):
    """Counts its calls in its argument, or in a buffer, and returns nothing or the sum."""

    def __init__(self, returns: bool) -> None:
        super().__init__()
        self.returns = returns
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, seen: torch.Tensor) -> torch.Tensor | None:
        self.calls.add_(1)
        seen.add_(1)
        return seen + self.calls if self.returns else None


def engine_of(model: nn.Module, *args: torch.Tensor) -> ingot.Engine:
    with torch.no_grad():
        return ingot.build(torch.export.export(model.eval(), args))


@pytest.mark.parametrize("result", list(RESULTS))
def test_results_have_the_structure_of_the_model(result: str) -> None:
    model = Returning(RESULTS[result])
    engine = engine_of(model, X)
    expected = model(X)
    for got in (engine(X), engine(x=X), engine(X)):
        assert type(got) is type(expected)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("returns", [True, False])
def test_a_call_runs_once(returns: bool) -> None:
    engine = engine_of(Counting(returns), torch.zeros(2))
    for kind in (torch.zeros, np.zeros):
        engine.reset_states()
        seen = kind(2, dtype=torch.float32 if kind is torch.zeros else np.float32)
        for call in range(1, 4):
            result = engine(seen)
            assert seen.tolist() == [call, call]
            assert result is None if not returns else result.tolist() == [2 * call, 2 * call]


def test_results_are_of_the_kind_of_the_first_argument() -> None:
    class Sum(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a + b

    engine = engine_of(Sum(), X, X)
    kinds = {torch.Tensor: X, nn.Parameter: nn.Parameter(X), np.ndarray: X.numpy()}
    for left, a in kinds.items():
        for b in kinds.values():
            got = engine(a, b)
            assert type(got) is (np.ndarray if left is np.ndarray else torch.Tensor)
            np.testing.assert_array_equal(np.asarray(got), (X + X).numpy())


def test_wrong_calls_are_refused_each_time() -> None:
    engine = engine_of(Returning(RESULTS["a tensor"]), X)
    masked = np.ma.masked_array(X.numpy(), mask=X.numpy() > 2)
    wrong: list[tuple[str, tuple]] = [
        ("INGOT-U300", ()), ("INGOT-U300", (X, X)), ("INGOT-U309", (masked,)), ("INGOT-U309", ("x",)),
        ("INGOT-U309", (None,)), ("INGOT-U302", (X.double(),)), ("INGOT-U303", (X.T.contiguous(),)),
    ]  # fmt: skip
    for _ in range(2):
        for code, args in wrong:
            with pytest.raises(ingot.UserError) as caught:
                engine(*args)
            assert caught.value.code == code
        assert torch.equal(engine(X), torch.relu(X - 3))
