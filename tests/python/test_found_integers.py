# SPDX-License-Identifier: Apache-2.0
"""`item()` of integers of any sign: their values in engines, wholly and in parts, against eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import lacking
import pytest
import torch
from small_models import Function
from test_passed_numbers import ANY_SIGN, X, assert_same

VALUES = (3, 5, 1, 0, -1, -4)
# torch.export takes no such integer into a branch, and numbers alone need no engine.
COMPUTED = {name: function for name, function in ANY_SIGN.items() if name not in ("branch", "only", "many")}
COMPUTED["row"] = lambda x, k: x[k] * 2  # torch.export makes an argument's sign a guard


_OF_NUMBERS = {"aten._local_scalar_dense.default", "aten.item.default", "aten._assert_scalar.default"}


@pytest.fixture(autouse=True)
def _with_scalars() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True), torch.no_grad():
        yield


def of_item(function: Callable) -> Callable:
    return lambda x, n: function(x, n.item())


def in_parts(function: Callable) -> Callable:
    """Torch runs calls before and after the item, whose value parts on both sides of them read."""

    def divided(x: torch.Tensor, n: torch.Tensor) -> tuple[Any, Any]:
        k = lacking.negated(-n.double()).long().item()
        return function(x, k), lacking.negated(x.sin() * k) + k

    return divided


def exported(function: Callable, folder: Path) -> torch.export.ExportedProgram:
    return torch.export.export(Function(function), (X, torch.tensor(3)), strict=False)


def ahead_of_time(function: Callable, folder: Path) -> Callable:
    return ingot.compile(exported(function, folder), check_speed=False)


def just_in_time(function: Callable, folder: Path) -> Callable:
    return torch.compile(function, backend="ingot", fullgraph=True)


def saved(function: Callable, folder: Path) -> Callable:
    ingot.save(ahead_of_time(function, folder), folder / "model.pt2")
    return ingot.load(folder / "model.pt2")


def from_file(function: Callable, folder: Path) -> Callable:
    torch.export.save(exported(function, folder), folder / "model.pt2")
    return ingot.build(folder / "model.pt2")


def check(run: Callable, function: Callable) -> None:
    for value in VALUES:
        n = torch.tensor(value)
        assert_same(run(X, n), function(X, n))


@pytest.mark.parametrize("way", [ahead_of_time, just_in_time, from_file], ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", COMPUTED)
def test_one_engine(name: str, way: Callable, tmp_path: Path) -> None:
    function = of_item(COMPUTED[name])
    run = way(function, tmp_path)
    check(run, function)
    if way is not from_file:
        assert not ingot.report(run).fallbacks


@pytest.mark.parametrize("way", [ahead_of_time, just_in_time, saved], ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", COMPUTED)
def test_in_parts(name: str, way: Callable, tmp_path: Path) -> None:
    function = in_parts(COMPUTED[name])
    run = way(function, tmp_path)
    check(run, function)
    if way is not saved:
        operators = {node.op for node in ingot.report(run).fallbacks if node.op.startswith("aten.")}
        assert operators <= _OF_NUMBERS


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8], ids=str)
def test_dtypes(dtype: torch.dtype, tmp_path: Path) -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x * n.to(dtype).item() + n.to(dtype)[None].sum()

    check(ahead_of_time(function, tmp_path), function)


def test_numbers_as_results() -> None:
    function = of_item(lambda x, k: (k, -k * 2, k + x.shape[0], x + k))
    check(ingot.build(exported(function, Path())), function)


def test_large_integers() -> None:
    """Only those that are sizes have to fit in memory."""
    run = ingot.build(exported(of_item(lambda x, k: (k // 3, k - 7)), Path()))
    for value in (2**62, -(2**62), 2**63 - 1):
        assert run(X, torch.tensor(value)) == (value // 3, value - 7)


def test_sizes_are_checked(tmp_path: Path) -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        k = n.item()
        torch._check(k + 4 >= 0)
        torch._check(k <= 9)
        return torch.ones(k + 4) * x[0, 0]

    for way in (ahead_of_time, just_in_time, from_file):
        torch._dynamo.reset()
        run = way(function, tmp_path)
        check(run, function)
        for wrong in (-5, 10):
            with pytest.raises((ingot.UserError, RuntimeError)):
                run(X, torch.tensor(wrong))
        assert_same(run(X, torch.tensor(9)), function(X, torch.tensor(9)))
