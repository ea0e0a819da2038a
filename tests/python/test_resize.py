# SPDX-License-Identifier: Apache-2.0
"""resize_ and resize_as_ in engines: the elements that memory has, in its order, in another shape."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from small_models import Function
from whole_models import WHOLE, ahead_of_time, check


def _resized(x: torch.Tensor, *size: int) -> torch.Tensor:
    return x.clone().resize_(size)


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the same": lambda x: _resized(x, 3, 4) * 2,
    "another shape": lambda x: _resized(x, 2, 6) * 2,
    "fewer": lambda x: _resized(x, 2, 2) * 2,
    "no dims": lambda x: _resized(x) * 2,
    "none": lambda x: _resized(x, 0, 3).sum(0),
    "of another tensor": lambda x: x.clone().resize_as_(x[:2, :3]) * 2,
    "transposed memory": lambda x: x.t().clone().resize_(2, 3) * 2,
    "filled later": lambda x: torch.empty(0).resize_as_(x).copy_(x) + 1,
    "more, of which some are set": lambda x: torch.ops.aten.resize(x + 1, [5, 4])[:3] * 2,
}


@pytest.mark.parametrize("name", CALLS)
def test_new_sizes(name: str) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    check(Function(CALLS[name]), ahead_of_time, [(x,), (x + 1,)])


def test_sizes_that_vary() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.resize(x + 1, [x.shape[1], x.shape[0]]).t() + x

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="ingot", dynamic=True, fullgraph=True, options=WHOLE)
    for rows, columns in ((3, 4), (5, 2), (7, 9)):
        x = torch.randn(rows, columns)
        assert torch.equal(compiled(x), function(x))


def test_growing_a_part_of_memory_runs_in_torch() -> None:
    """Its further elements are those after it in memory, which an engine does not see."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.resize(x[1:], [2, 4]) * 2

    x = torch.arange(12.0).reshape(3, 4)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(function, backend="ingot")(x), function(x))
