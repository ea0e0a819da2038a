# SPDX-License-Identifier: Apache-2.0
"""linalg.lstsq in engines, against LAPACK's drivers: solutions, residuals, ranks and singular values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from accuracy import assert_accurate
from test_fork import in_child
from test_symmetric_factors import seeded, wide
from torch import linalg

DRIVERS = ("gels", "gelsy", "gelsd", "gelss", None)
SHAPES = [(7, 4), (4, 7), (5, 5), (2, 9, 3), (3, 1, 6, 8), (1, 1), (30, 12)]
_DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


class Solve(torch.nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = linalg.lstsq(a, b, **self.options)
        return tuple(torch.view_as_real(each) if each.is_complex() else each for each in found)


class Solution(Solve):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return super().forward(a, b)[0]


def compiled(model: torch.nn.Module, *inputs: Any) -> Any:
    return ingot.compile(model, inputs=inputs, require_full_compilation=True)


def check(model: Solve, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    found, expected, exact = compiled(model, a, b)(a, b), model(a, b), model(wide(a), wide(b))
    for each, eager, true in zip(found, expected, exact, strict=True):
        assert each.shape == eager.shape
        assert each.dtype == eager.dtype
        if each.dtype.is_floating_point:
            assert_accurate(each, eager, true)
        else:
            assert torch.equal(each, eager)
    return found


def deficient(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Of rank 2, of small integers, so that it is so exactly."""
    *batch, rows, columns = shape
    left = (seeded(*batch, rows, 2, dtype=torch.float64) * 3).round()
    right = (seeded(*batch, 2, columns, dtype=torch.float64, seed=8) * 3).round()
    factor = 1 + 2j if dtype.is_complex else 1
    return (left @ right * factor).to(dtype)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
def test_full_rank(driver: str | None, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        a, b = seeded(*shape, dtype=dtype), seeded(*shape[:-1], 2, dtype=dtype, seed=9)
        check(Solve(driver=driver), a, b)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 7), (2, 4, 4), (6, 6)], ids=str)
def test_deficient_rank(driver: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    a, b = deficient(*shape, dtype=dtype), seeded(*shape[:-1], 2, dtype=dtype)
    model = Solve(driver=driver, rcond=1e-5)
    if (
        driver == "gelsy"
    ):  # the shortest solution is the same; torch leaves the pivots of gelsy, and its rank, to chance
        found, reference = compiled(model, a, b)(a, b), Solution(driver="gelsd", rcond=1e-5)
        assert_accurate(found[0], reference(a, b), reference(wide(a), wide(b)))
    else:
        found = check(model, a, b)
    assert (found[2] == 2).all()


@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
@pytest.mark.parametrize("rcond", [-1.0, 0.0, 1e-4, 0.3, 0.9])
def test_rcond(driver: str, rcond: float) -> None:
    for dtype in (torch.float64, torch.complex128):
        for shape in ((5, 5), (2, 4, 8)):
            a, b = seeded(*shape, dtype=dtype), seeded(*shape[:-1], 3, dtype=dtype)
            check(Solve(driver=driver, rcond=rcond), a, b)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("rcond", [-1.0, 0.0, 1e-9, 1e-4, 1e-2])
def test_ranks_of_nearly_deficient_matrices(driver: str, rcond: float) -> None:
    for dtype in (torch.float64, torch.complex128):
        for shape in ((5, 5), (2, 4, 8)):
            a = deficient(*shape, dtype=dtype) + 1e-6 * seeded(*shape, dtype=dtype, seed=5)
            b = seeded(*shape[:-1], 3, dtype=dtype)
            found = compiled(Solve(driver=driver, rcond=rcond), a, b)(a, b)
            expected = Solve(driver="gelsd", rcond=rcond)(a, b)
            assert torch.equal(found[2], expected[2])
            assert bool((found[2] == (2 if rcond >= 1e-4 else min(shape[-2:]))).all())
            torch.testing.assert_close(found[0], expected[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("driver", DRIVERS)
def test_vectors_and_batches(driver: str | None) -> None:
    def of(a: tuple[int, ...], b: tuple[int, ...]) -> None:
        check(Solve(driver=driver), seeded(*a, dtype=torch.float32), seeded(*b, dtype=torch.float32, seed=9))

    of((6, 3), (6,))
    of((2, 6, 3), (2, 6))
    of((2, 6, 3), (1, 6, 2))
    of((4, 1, 3, 5), (1, 2, 3, 2))
    of((0, 6, 3), (0, 6, 2))
    of((0, 3), (0, 2))


@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
def test_residuals_need_full_rank(driver: str) -> None:
    """Torch has none otherwise; what else it returns is there."""
    a, b = deficient(6, 4, dtype=torch.float32), seeded(6, 1, dtype=torch.float32)
    alone = compiled(Solution(driver=driver), a, b)
    torch.testing.assert_close(alone(a, b), linalg.lstsq(a, b, driver=driver).solution)
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*full rank"):
        compiled(Solve(driver=driver), a, b)(a, b)


def test_gels_needs_full_rank() -> None:
    a, b = torch.zeros(5, 3), torch.ones(5, 1)
    a[:, 0] = 1
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*full rank"):
        compiled(Solution(driver="gels"), a, b)(a, b)


def test_matrices_that_are_not_finite() -> None:
    a, b = seeded(2, 5, 3, dtype=torch.float32), torch.ones(2, 5, 1)
    a[0, 0, 0] = torch.inf
    for driver in ("gelsy", "gelsd"):
        found = compiled(Solution(driver=driver), a, b)(a, b)
        assert found[0].isnan().all()
        assert found[1].isfinite().all()


@pytest.mark.parametrize("driver", DRIVERS)
def test_symbolic_sizes(driver: str | None) -> None:
    sizes = {"min_shape": (2, 9, 3), "opt_shape": (2, 12, 5), "max_shape": (2, 40, 8)}
    model = Solution(driver=driver)
    built = compiled(model, ingot.Input(**sizes), ingot.Input(**sizes))
    for rows, columns in ((9, 3), (25, 8)):
        a, b = (
            seeded(2, rows, columns, dtype=torch.float32),
            seeded(2, rows, columns, dtype=torch.float32, seed=9),
        )
        assert_accurate(built(a, b), model(a, b), model(wide(a), wide(b)))


class Both(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ld, pivots = linalg.ldl_factor(a @ a.mH, hermitian=True)
        parts = [linalg.lstsq(a, b, driver=driver).solution for driver in DRIVERS]
        return torch.view_as_real(torch.stack([*parts, linalg.ldl_solve(ld, pivots, b, hermitian=True)]))


def test_in_children_and_by_fewer_instructions(tmp_path: Path) -> None:
    a, b = seeded(64, 6, 6, dtype=torch.complex64), seeded(64, 6, 2, dtype=torch.complex64, seed=9)
    module = ingot.compile(Both(), inputs=[a, b], require_full_compilation=True, cpu="x86-64-v3")
    path = str(tmp_path / "both.ingot")
    ingot.save(module, path, output_format="engine")
    assert_accurate(module(a, b), Both()(a, b), Both()(wide(a), wide(b)))
    engine, (given_a, given_b) = ingot.Engine.load(path), (a.numpy(), b.numpy())
    expected = np.asarray(engine(given_a, given_b)[0])
    assert in_child(lambda: np.array_equal(np.asarray(engine(given_a, given_b)[0]), expected)) == 0


@pytest.mark.parametrize(
    ("a", "b"), [((5, 3), (4, 2)), ((5, 3), (2, 5, 2)), ((2, 5, 3), (5, 2)), ((5,), (5,))], ids=str
)
def test_shapes_that_do_not_fit_are_errors(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(Exception, match=r"lstsq|dim"):
        compiled(Solve(), torch.ones(a), torch.ones(b))


def test_torch_traces_as_before() -> None:
    """What lets it trace these ends with the build."""
    a, b = torch.ones(3, 2), torch.ones(3, 1)
    compiled(Solution(), torch.eye(3)[:, :2], b)
    with pytest.raises(Exception, match="lstsq"):
        torch.export.export(Solve(), (a, b))
