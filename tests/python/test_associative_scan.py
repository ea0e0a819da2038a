# SPDX-License-Identifier: Apache-2.0
"""torch.associative_scan, wholly in engines, against eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan, associative_scan_op
from whole_models import WHOLE, ahead_of_time, assert_same, check, just_in_time


def _chained(a: Any, b: Any) -> Any:
    """Of h -> p * h + q, two in a row."""
    return a[0] * b[0], b[0] * a[1] + b[1]


_SCANS: dict[str, Callable[..., Any]] = {
    "sums": lambda x, y: associative_scan(torch.add, x, dim=0, combine_mode="generic"),
    "reversed": lambda x, y: associative_scan(torch.maximum, x, dim=0, reverse=True, combine_mode="generic"),
    "other dim": lambda x, y: associative_scan(torch.mul, x, dim=1, combine_mode="generic"),
    "recurrence": lambda x, y: associative_scan(_chained, (y, x), dim=-2, combine_mode="generic")[1] * 2,
    "products of matrices": lambda x, y: associative_scan(
        torch.matmul, x[..., None] * y[..., None, :], dim=0, combine_mode="generic"
    ),
    "tree": lambda x, y: associative_scan(
        lambda a, b: {"p": a["p"] * b["p"], "q": (b["p"] * a["q"][0] + b["q"][0],)},
        {"p": x, "q": (y,)}, dim=1, reverse=True, combine_mode="generic",
    )["q"],
}  # fmt: skip


class _Divided(torch.nn.Module):
    """torch makes calls on whole tensors of these scans, and torch.export keeps the vmap around them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return _SCANS[self.name](x, y)


def _check_divided(name: str, way: Callable[..., Any], count: int) -> None:
    generator = torch.Generator().manual_seed(count)
    calls = [tuple(torch.rand(count, 5, 3, generator=generator) + 0.5 for _ in range(2)) for _ in range(2)]
    check(_Divided(name), way, calls)


@pytest.mark.parametrize("name", _SCANS)
def test_divided_associative_scans(name: str) -> None:
    _check_divided(name, ahead_of_time, 7)


def test_divided_associative_scan_just_in_time() -> None:
    _check_divided("recurrence", just_in_time, 4)


@pytest.mark.parametrize("count", [1, 2])
def test_divided_associative_scans_of_few_rows(count: int) -> None:
    _check_divided("recurrence", ahead_of_time, count)


class _Recurrence(torch.nn.Module):
    """The operator of torch itself, which a scan on a GPU calls: its graph stays one."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bias = torch.nn.Parameter(torch.randn(3)) if bias else None

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        def combine(a: Any, b: Any, c: Any, d: Any, *bias: Any) -> Any:
            return a * c, torch.where(d > 100, d, c * b + d) + sum(bias)

        # what is read from outside of the graph is an operand
        further = () if self.bias is None else (self.bias * 0,)
        factors, sums = associative_scan_op(combine, [y.sigmoid(), x], further)
        return factors, sums.flip(0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 21])
def test_associative_scan(count: int, bias: bool) -> None:
    torch.manual_seed(1)
    shapes = [(torch.randn(count, 2, 3) * 2, torch.randn(count, 2, 3)) for _ in range(3)]
    check(_Recurrence(bias), ahead_of_time, shapes)


def test_associative_scan_of_any_length(tmp_path: Path) -> None:
    """One build, also from a file, for all numbers of rows."""
    rows = torch.export.Dim("rows", min=1, max=200)
    model = _Recurrence().eval()
    examples = (torch.randn(6, 2, 3), torch.randn(6, 2, 3))
    program = torch.export.export(model, examples, dynamic_shapes=({0: rows}, {0: rows}))
    torch.export.save(program, tmp_path / "model.pt2")
    runs = [ingot.compile(program, **WHOLE), ingot.build(tmp_path / "model.pt2")]
    with torch.no_grad():
        for count in (1, 2, 3, 4, 5, 16, 17, 100, 200):
            x, y = torch.randn(count, 2, 3), torch.randn(count, 2, 3)
            for run in runs:
                assert_same(list(run(x, y)), model(x, y))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32, torch.int64], ids=str)
def test_associative_scan_of_dtypes(dtype: torch.dtype) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return associative_scan_op(torch.maximum, [x], ())[0]

    generator = torch.Generator().manual_seed(1)
    calls = [((torch.randn(9, 4, generator=generator) * 9).to(dtype),) for _ in range(2)]
    check(Model(), ahead_of_time, calls)


def test_graphs_of_associative_scans_are_of_single_rows() -> None:
    """One that is not elementwise would mean something else of whole tensors: torch runs it, and the report says why."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return associative_scan_op(lambda a, b: a + b.flip(0), [x], ())[0] * 2

    program = torch.export.export(Model(), (torch.randn(4, 3),))
    compiled = ingot.compile(program, check_speed=False)
    assert "not pointwise" in str(ingot.report(compiled))


_COMPLEX_SCANS: dict[str, Callable[..., Any]] = {
    "products": lambda x, y: associative_scan_op(lambda a, b: a * b, [torch.complex(x, y)], ())[0],
    "recurrence": lambda x, y: associative_scan_op(
        lambda a, b, c, d: (a * c, c * b + d),
        [torch.polar(x.sigmoid(), y), torch.complex(y, x)], (),
    )[1],
    "complex and real": lambda x, y: associative_scan_op(
        lambda a, b, c, d, f: (a + c, b * d * f.abs()), [x, torch.complex(x, y)], (torch.complex(y[0], x[0]),)
    )[1],
    "largest real part": lambda x, y: associative_scan_op(
        lambda a, b: torch.where(b.real > a.real, b, a), [torch.complex(x, y).conj_physical()], ()
    )[0],
}  # fmt: skip


class _ComplexScan(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.view_as_real(_COMPLEX_SCANS[self.name](x, y).resolve_conj())


@pytest.mark.parametrize("name", _COMPLEX_SCANS)
def test_associative_scans_of_complex_numbers(name: str) -> None:
    """The parts of complex tensors are scanned, since a pair is not elementwise."""
    generator = torch.Generator().manual_seed(2)
    calls = [tuple(torch.randn(9, 4, generator=generator) for _ in range(2)) for _ in range(2)]
    check(_ComplexScan(name), ahead_of_time, calls)
