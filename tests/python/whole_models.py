# SPDX-License-Identifier: Apache-2.0
"""Models compiled just in time and ahead of time, wholly in engines, and compared with eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch

WHOLE = {"require_full_compilation": True, "check_speed": False}


def just_in_time(model: torch.nn.Module, *args: torch.Tensor) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(model, backend="ingot", fullgraph=True, options=WHOLE)


def ahead_of_time(model: torch.nn.Module, *args: torch.Tensor) -> Callable[..., Any]:
    return ingot.compile(torch.export.export(model, args), **WHOLE)


WAYS = {"just in time": just_in_time, "ahead of time": ahead_of_time}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def assert_same(actual: Any, expected: Any) -> None:
    actual, expected = (
        value if isinstance(value, (tuple, list)) else (value,) for value in (actual, expected)
    )
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def check(model: torch.nn.Module, way: Callable[..., Any], calls: list[tuple[torch.Tensor, ...]]) -> None:
    model = model.eval()
    with torch.no_grad():
        run = way(model, *calls[0])
        for _ in range(2):
            for args in calls:
                assert_same(run(*args), model(*args))
