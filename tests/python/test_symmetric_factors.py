# SPDX-License-Identifier: Apache-2.0
"""linalg.ldl_factor and ldl_solve in engines, against LAPACK's: the same factors and pivots, blocks of one and of two rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate
from torch import linalg
from whole_functions import in_engine

_DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
# Of real matrices the argument counts for nothing.
KINDS = [(dtype, hermitian) for dtype in _DTYPES for hermitian in (False, True)]


def seeded(*shape: int, dtype: torch.dtype, seed: int = 7) -> torch.Tensor:
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(shape, dtype=wide, generator=torch.Generator().manual_seed(seed)).to(dtype)


def symmetric(x: torch.Tensor, hermitian: bool) -> torch.Tensor:
    return x + (x.mH if hermitian else x.mT)


def hollow(x: torch.Tensor, hermitian: bool) -> torch.Tensor:
    """Zeros on the diagonal, so that the first block has two rows."""
    return symmetric(x.tril(-1), hermitian)


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def check(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
    def reals(*given: torch.Tensor) -> torch.Tensor:
        result = function(*given)
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result

    assert_accurate(in_engine(reals, inputs), reals(*inputs), reals(*map(wide, inputs)))


@pytest.mark.parametrize(("dtype", "hermitian"), KINDS, ids=str)
@pytest.mark.parametrize("make", [symmetric, hollow])
def test_factors_and_pivots(make: Callable, dtype: torch.dtype, hermitian: bool) -> None:
    for n in (1, 2, 3, 8, 40):
        x = make(seeded(3, n, n, dtype=dtype), hermitian)
        check(lambda x: linalg.ldl_factor_ex(x, hermitian=hermitian).LD, x)
        pivots = in_engine(lambda x: linalg.ldl_factor_ex(x, hermitian=hermitian).pivots, [x])
        expected = linalg.ldl_factor_ex(x, hermitian=hermitian).pivots
        assert pivots.dtype == torch.int32
        assert torch.equal(pivots, expected)
        if make is hollow and n > 1:
            assert (expected < 0).any()


@pytest.mark.parametrize(("dtype", "hermitian"), KINDS, ids=str)
@pytest.mark.parametrize("make", [symmetric, hollow])
def test_solutions(make: Callable, dtype: torch.dtype, hermitian: bool) -> None:
    for n in (1, 2, 9, 24):
        shift = n * torch.eye(n, dtype=dtype).roll(n // 2, 0)  # far from singular
        x = make(seeded(2, n, n, dtype=dtype) / 4, hermitian) + symmetric(shift, hermitian)
        b = seeded(2, n, 3, dtype=dtype, seed=8)
        check(
            lambda x, b: linalg.ldl_solve(*linalg.ldl_factor(x, hermitian=hermitian), b, hermitian=hermitian),
            x,
            b,
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_given_factors(dtype: torch.dtype) -> None:
    """Factors and pivots of torch as inputs, of batches that broadcast, for which its own solution reads other memory."""
    x = hollow(seeded(4, 1, 6, 6, dtype=dtype), True) + 2 * torch.eye(6, dtype=dtype).fliplr()
    b = seeded(3, 6, 2, dtype=dtype)
    found = in_engine(
        lambda ld, pivots, b: linalg.ldl_solve(ld, pivots, b, hermitian=True).abs(),
        [*linalg.ldl_factor(x, hermitian=True), b],
    )
    expected = linalg.solve(wide(x), wide(b)).abs().float()
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
def test_one_triangle_is_read(dtype: torch.dtype) -> None:
    x = symmetric(seeded(5, 5, dtype=dtype), True)
    imaginary = 3j * torch.eye(5, dtype=dtype) if dtype.is_complex else 0
    check(lambda x: linalg.ldl_factor(x + 9 * x.triu(1) + imaginary, hermitian=True).LD, x)


def test_info_says_where_it_failed() -> None:
    x = torch.diag_embed(torch.tensor([[1.0, 0, 2, 0], [1, 2, 3, 4], [0, 0, 0, 0]]))
    for name in ("info", "pivots", "LD"):
        found = in_engine(lambda x, name=name: getattr(linalg.ldl_factor_ex(x), name), [x])
        assert torch.equal(found, getattr(linalg.ldl_factor_ex(x), name))
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*ldl_factor"):
        in_engine(lambda x: linalg.ldl_factor(x).LD, [x])


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        ld, pivots = linalg.ldl_factor(x)
        return linalg.ldl_solve(ld, pivots, x) + ld

    x = torch.zeros(shape)
    assert in_engine(function, [x]).shape == function(x).shape


@pytest.mark.parametrize("pivots", [[0, 2, 3], [1, 2, 4], [1, 2, -3], [-2, 2, 3], [-1, -2, -3], [1, -5, -5]])
def test_pivots_that_name_no_rows_are_errors(pivots: list[int]) -> None:
    given: list[Any] = [torch.eye(3), torch.tensor(pivots, dtype=torch.int32), torch.ones(3, 1)]
    with pytest.raises(ingot.UserError, match=r"INGOT-U332.*ldl_solve"):
        in_engine(linalg.ldl_solve, given)


def test_symbolic_sizes() -> None:
    torch._dynamo.reset()
    options = {"require_full_compilation": True, "check_speed": False}

    def function(z: torch.Tensor) -> torch.Tensor:
        h = symmetric(z, True) + 2 * z.shape[-1] * torch.eye(z.shape[-1], dtype=z.dtype)
        return linalg.ldl_solve(*linalg.ldl_factor(h, hermitian=True), z, hermitian=True)

    compiled = torch.compile(function, backend="ingot", dynamic=True, fullgraph=True, options=options)
    for n in (6, 9, 17):
        z = seeded(3, n, n, dtype=torch.complex64)
        assert torch.allclose(compiled(z), function(wide(z)).to(z.dtype), rtol=1e-3, atol=1e-4)
