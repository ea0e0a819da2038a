# SPDX-License-Identifier: Apache-2.0
"""Sums and products of truth values at indices that repeat, and over dims: whether any, and whether all are true, as in eager."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import ingot
import pytest
import torch
from small_models import Function

COUNT = 5
Write = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _reduced(reduce: str, include_self: bool) -> Write:
    return lambda x, index, source: x.scatter_reduce(0, index, source, reduce, include_self=include_self)


WRITES: dict[str, Write] = {
    **{
        f"scatter_reduce {reduce} {included}": _reduced(reduce, included)
        for reduce, included in itertools.product(("sum", "prod", "amax", "amin"), (True, False))
    },
    "scatter_add": lambda x, index, source: x.scatter_add(0, index, source),
    "scatter_add_": lambda x, index, source: x.clone().scatter_add_(0, index, source),
    "scatter add": lambda x, index, source: x.scatter(0, index, source, reduce="add"),
    "scatter multiply": lambda x, index, source: x.scatter(0, index, source, reduce="multiply"),
    "scatter multiply False": lambda x, index, source: x.scatter(0, index, False, reduce="multiply"),
    "index_add": lambda x, index, source: x.index_add(0, index, source),
    "index_add of none": lambda x, index, source: x.index_add(0, index, source, alpha=False),
    "put": lambda x, index, source: x.put(index, source, accumulate=True),
    "index_put": lambda x, index, source: x.index_put((index,), source, accumulate=True),
    "index_put by a mask": lambda x, index, source: x.index_put((x,), source[0], accumulate=True),
    "index_put by another mask": lambda x, index, source: x.index_put((~x,), source[0], accumulate=True),
}


def _bools(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)


@pytest.mark.filterwarnings("ignore:The reduce argument")
@pytest.mark.parametrize("write", WRITES)
def test_every_combination(write: str) -> None:
    """Each element of x meets none, one, two or three of the source, in all combinations of true and false."""
    index = torch.tensor([0, 1, 1, 2, 2, 2, 3, 3])
    compiled = ingot.compile(
        Function(WRITES[write]),
        inputs=[_bools(*[0] * COUNT), index, _bools(*[0] * len(index))],
        require_full_compilation=True,
    )
    for source in itertools.product((0, 1), repeat=len(index)):
        for each in (0, 1):
            x, given = _bools(*[each] * COUNT), _bools(*source)
            assert compiled(x, index, given).tolist() == WRITES[write](x, index, given).tolist()


def test_many_writes_of_one_element() -> None:
    """More than a byte counts."""
    index, source = torch.zeros(1000, dtype=torch.int64), torch.arange(1000) < 256
    function = Function(
        lambda x, index, source: (
            x.scatter_add(0, index, source),
            x.index_put((index,), source, accumulate=True),
        )
    )
    x = _bools(0, 0)
    compiled = ingot.compile(function, inputs=[x, index, source], require_full_compilation=True)
    for result in compiled(x, index, source):
        assert result.tolist() == [True, False]


def test_means_are_errors_of_eager() -> None:
    x, index = _bools(0, 1), torch.tensor([0, 0])
    model = Function(lambda x, index: x.scatter_reduce(0, index, x, "mean"))
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        model(x, index)
    with pytest.raises(ingot.UserError, match="not implemented for 'Bool'"):
        ingot.compile(model, inputs=[x, index], require_full_compilation=True)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32], ids=str
)
def test_reductions_in_bool(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.sum(x, dtype=torch.bool),
            torch.sum(x, 1, dtype=torch.bool),
            torch.sum(x, (0, 1), keepdim=True, dtype=torch.bool),
            torch.prod(x, dtype=torch.bool),
            torch.prod(x, 1, dtype=torch.bool),
            torch.prod(x, 0, keepdim=True, dtype=torch.bool),
            x.to(torch.bool).sign(),
            x.to(torch.bool).sgn(),
        )

    rows = torch.tensor([[0, 0, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0]])
    rows = (
        torch.cat([rows, rows * 2, rows * 0.3]).to(dtype) if dtype.is_floating_point else (rows * 2).to(dtype)
    )
    compiled = ingot.compile(Function(function), inputs=[rows], require_full_compilation=True)
    for given in (rows, torch.zeros_like(rows), torch.ones_like(rows)):
        for result, expected in zip(compiled(given), function(given), strict=True):
            assert result.dtype is torch.bool
            assert result.tolist() == expected.tolist()
