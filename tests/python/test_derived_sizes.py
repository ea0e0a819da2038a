# SPDX-License-Identifier: Apache-2.0
"""Dims of torch.export that are multiples of another (`16 * Dim("h")`), as torch suggests where a model divides its sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from small_models import Function
from torch import nn
from torch.export import Dim


class _Levels(nn.Module):
    """Joins what it pools with what it upsamples."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(7, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.max_pool2d(self.down(x), 4)
        return self.up(torch.cat([x, nn.functional.interpolate(y, scale_factor=4.0)], 1)).relu()


def _halves(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1, 2, x.shape[1]).relu().sum(1)


def _indices(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[0] // 2) * 2 + y.relu().sum()


_n, _m = Dim("n", min=1, max=9), Dim("m", min=1, max=5)
# A model, its dims, and its arguments for values of n.
CASES: dict[str, tuple[Callable[[], nn.Module], tuple, Callable[[int], tuple]]] = {
    "pairs": (lambda: Function(_halves), ({0: 2 * _n},), lambda n: (torch.randn(2 * n, 3),)),
    "two": (
        lambda: Function(lambda x, y: (x + y).relu()),
        ({0: 2 * _n}, {0: 2 * _n}),
        lambda n: (torch.randn(2 * n, 3), torch.randn(2 * n, 3)),
    ),
    "odd": (
        lambda: Function(lambda x: x[::2].relu() * 2),
        ({0: 2 * _n + 1},),
        lambda n: (torch.randn(2 * n + 1, 3),),
    ),
    "one less": (
        lambda: Function(lambda x, y: torch.cat([x.relu(), y])),
        ({0: _n - 1}, {0: _n - 1}),
        lambda n: (torch.randn(n - 1, 3), torch.randn(n - 1, 3)),
    ),
    "also alone": (
        lambda: Function(lambda x, y: x.repeat_interleave(2, 0).relu() + y),
        ({0: _n}, {0: 2 * _n}),
        lambda n: (torch.randn(n, 3), torch.randn(2 * n, 3)),
    ),
    "a size as a value": (
        lambda: Function(_indices),
        ({0: 2 * _n}, None),
        lambda n: (torch.randn(2 * n, 3), torch.randn(2)),
    ),
    "levels": (_Levels, ({2: 4 * _n, 3: 4 * _m},), lambda n: (torch.randn(1, 3, 4 * n, 4 * min(n, 5)),)),
}  # fmt: skip


def _exported(name: str) -> torch.export.ExportedProgram:
    make, shapes, arguments = CASES[name]
    return torch.export.export(
        make().eval(), arguments(4), dynamic_shapes=(shapes,) if name != "levels" else shapes
    )


def _from_file(program: torch.export.ExportedProgram, folder: Path) -> Callable:
    torch.export.save(program, folder / "model.pt2")
    return ingot.build(folder / "model.pt2")


def _in_parts(program: torch.export.ExportedProgram, folder: Path) -> Callable:
    compiled = ingot.dynamo.compile(program, torch_executed_ops=["aten.relu"], min_block_size=1)
    assert {segment.backend for segment in compiled.report.segments} == {"cpu", "torch"}
    return compiled


def _saved(make: Callable) -> Callable:
    def run(program: torch.export.ExportedProgram, folder: Path) -> Callable:
        ingot.save(make(program, folder), folder / "saved.pt2")
        return ingot.load(folder / "saved.pt2")

    return run


def _whole(program: torch.export.ExportedProgram, folder: Path) -> Callable:
    return ingot.dynamo.compile(program, require_full_compilation=True)


WAYS: dict[str, Callable[[torch.export.ExportedProgram, Path], Any]] = {
    "engine": lambda program, folder: ingot.build(program), "file": _from_file, "module": _whole, "in parts": _in_parts,
    "saved": _saved(_whole), "saved in parts": _saved(_in_parts),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_results_are_eagers(name: str, way: str, tmp_path: Path) -> None:
    run = WAYS[way](_exported(name), tmp_path)
    make, _, arguments = CASES[name]
    for n in (4, 2, 9, 3):
        given = arguments(n)
        torch.testing.assert_close(run(*given), make()(*given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", ["engine", "module", "in parts"])
@torch.no_grad()
def test_other_sizes_are_rejected_by_name(way: str, tmp_path: Path) -> None:
    run = WAYS[way](_exported("two"), tmp_path)
    for sizes, says in (
        ((7, 7), r"INGOT-U303\] dim 0 of input .* is 7, but the model expects 6"),
        ((8, 6), r"INGOT-U303\] dim 0 of input .* is 6, but the model expects 8"),
        ((20, 20), r"INGOT-U305\] dim 0 of input .* is 20, outside of the range 2..18"),
        ((0, 0), r"INGOT-U305\] dim 0 of input .* is 0, outside of the range 2..18"),
    ):
        with pytest.raises(ingot.UserError, match=says):
            run(*(torch.ones(size, 3) for size in sizes))
    torch.testing.assert_close(run(torch.ones(6, 3), torch.ones(6, 3)), torch.full((6, 3), 2.0))


def _ranged(low: int, typical: int, high: int) -> ingot.Engine:
    given = ingot.Input(min_shape=(low, 3), opt_shape=(typical, 3), max_shape=(high, 3))
    return ingot.dynamo.compile(_exported("pairs"), [given], require_full_compilation=True).engine


@torch.no_grad()
def test_inputs_give_ranges() -> None:
    engine = _ranged(3, 6, 11)  # even sizes: 4 to 10
    for size in (4, 6, 10):
        assert engine(torch.ones(size, 3)).shape == (size // 2, 3)
    for size in (2, 12):
        with pytest.raises(ingot.UserError, match=r"outside of the range 4\.\.10"):
            engine(torch.ones(size, 3))
    with pytest.raises(ingot.UserError, match=r"INGOT-U011.*exported for 2..18"):
        _ranged(2, 6, 30)
    with pytest.raises(ingot.UserError, match=r"INGOT-U011.*no size in 5..5"):
        _ranged(5, 5, 5)


@torch.no_grad()
def test_conditions_are_in_terms_of_the_argument() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._check(x.shape[0] // 2 != 3)
        return x.relu()

    program = torch.export.export(Function(function), (torch.ones(8, 3),), dynamic_shapes=(({0: 2 * _n},),))
    for run in (
        ingot.build(program),
        ingot.dynamo.compile(program, torch_executed_ops=["aten.relu"], min_block_size=1),
    ):
        assert run(torch.ones(10, 3)).shape == (10, 3)
        with pytest.raises(ingot.UserError, match=r"INGOT-U312.*args_0\.shape\[0\] // 2\) != 3"):
            run(torch.ones(6, 3))
