# SPDX-License-Identifier: Apache-2.0
"""Linear algebra in engines, against eager: every factorization, batches that broadcast, sizes around the blocks, bad matrices."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from rebuilt import joined, rebuilt_svd
from test_fourier import check, in_engine, seeded
from torch import linalg

SIZES = [1, 8, 9, 33]


def definite(x: torch.Tensor) -> torch.Tensor:
    """A matrix that is symmetric and positive definite, and no worse conditioned than its size."""
    return x @ x.mT / x.shape[-1] + 2 * torch.eye(x.shape[-1], dtype=x.dtype)


def regular(x: torch.Tensor) -> torch.Tensor:
    """Needs pivots, since its large elements are off the diagonal."""
    return x / 4 + x.shape[-1] * torch.eye(x.shape[-1], dtype=x.dtype).roll(1, 0)


def rebuilt_eigen(x: torch.Tensor) -> torch.Tensor:
    values, vectors = linalg.eigh(definite(x))
    return torch.cat(
        [(vectors * values.unsqueeze(-2)) @ vectors.mT, vectors.mT @ vectors, values.unsqueeze(-2)], -2
    )


def unpacked_lu(x: torch.Tensor) -> torch.Tensor:
    return joined(*linalg.lu(x))


def unpacked_qr(x: torch.Tensor, mode: str = "reduced") -> torch.Tensor:
    return joined(*linalg.qr(x, mode))


SQUARE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cholesky": lambda x: linalg.cholesky(definite(x)) + linalg.cholesky(definite(x), upper=True),
    "cholesky_solve": lambda x: torch.cholesky_solve(x, linalg.cholesky(definite(x))),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(
        linalg.cholesky(definite(x), upper=True), upper=True
    ),
    "det": lambda x: linalg.det(regular(x) / x.shape[-1]),
    "eigh": rebuilt_eigen,
    "exponential": lambda x: linalg.matrix_exp(x / x.shape[-1]),
    "inverse": lambda x: linalg.inv(regular(x)),
    "lu": lambda x: unpacked_lu(regular(x)),
    "pinv_hermitian": lambda x: linalg.pinv(definite(x), hermitian=True),
    "power": lambda x: linalg.matrix_power(regular(x) / x.shape[-1], -2),
    "slogdet": lambda x: torch.stack(linalg.slogdet(regular(x))),
    "solve": lambda x: linalg.solve(regular(x), x),
    "solve_left": lambda x: linalg.solve(regular(x), x, left=False),
    "solve_vector": lambda x: linalg.solve(regular(x), x[..., 0]),
    "triangular": lambda x: linalg.solve_triangular(
        regular(x.triu()) + x.shape[-1] * torch.eye(x.shape[-1]), x, upper=True
    ),
    "triangular_unit": lambda x: linalg.solve_triangular(
        x.tril() / 9, x, upper=False, left=False, unitriangular=True
    ),
}
ANY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "lu": unpacked_lu,
    "norms": lambda x: torch.stack([linalg.matrix_norm(x, 2), linalg.matrix_norm(x, "nuc")]),
    "pinv": linalg.pinv,
    "qr": unpacked_qr,
    "qr_complete": lambda x: unpacked_qr(x, "complete"),
    "svd": rebuilt_svd,
    "svd_full": lambda x: rebuilt_svd(x, True),
}


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name: str) -> None:
    for n in SIZES if name in ("cholesky", "lu") else (5, 33):
        check(SQUARE[name], seeded(2, n, n))


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("shape", [(3, 5, 4), (4, 9), (20, 11)])
def test_any_matrices(name: str, shape: tuple[int, ...]) -> None:
    check(ANY[name], seeded(*shape))


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 3), (3, 4, 0), (0, 3, 3)], ids=str)
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        square = x @ x.mT
        inverse = linalg.pinv(square, hermitian=True).flatten() + linalg.inv(regular(square)).flatten()
        return torch.cat([linalg.pinv(x).flatten(), linalg.det(square).flatten(), inverse])

    check(function, seeded(*shape))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_exponentials_of_halves_are_rounded_once(dtype: torch.dtype) -> None:
    """torch 2.13's kernel reads beyond its table of coefficients for them: NaN, infinities and large numbers."""
    x = (seeded(3, 6, 6) * torch.tensor([0.01, 1, 4])[:, None, None]).to(dtype)
    for function in (linalg.matrix_exp, torch.matrix_exp):
        assert torch.equal(in_engine(function, x), function(x.float()).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
def test_exponentials_of_matrices_of_all_sizes(dtype: torch.dtype) -> None:
    """Each degree of the polynomial, and repeated squares; the norm of the error beside that of the result."""
    wide = torch.complex128 if dtype.is_complex else torch.float64
    x = seeded(7, 7).to(wide)
    if dtype.is_complex:
        x = x + 1j * seeded(7, 7).mT.to(wide)
    scales = torch.logspace(-6, 1.2, 60, dtype=torch.float64)
    given = (x / linalg.matrix_norm(x, 1) * scales[:, None, None]).to(dtype)
    skew = (given - given.mH) / 2  # its exponential has the norm 1, but no element of the powers has
    for matrices in (given, skew, torch.cat([given[-1:], given.new_zeros(1, 7, 7)])):
        result, exact = in_engine(linalg.matrix_exp, matrices), linalg.matrix_exp(matrices.to(wide))
        errors = linalg.matrix_norm(result.to(wide) - exact) / linalg.matrix_norm(exact)
        assert errors.max() < (torch.finfo(dtype).eps if dtype.itemsize < wide.itemsize else 2e-14), errors


def test_wide_numbers() -> None:
    check(lambda x: torch.cat([SQUARE["solve"](x), rebuilt_eigen(x), SQUARE["cholesky"](x)], -2),
          seeded(2, 12, 12, dtype=torch.float64))  # fmt: skip


def test_batches_broadcast() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        a, b = regular(x[:, :1]), x[0, :, :, :3]
        return torch.cat(
            [linalg.solve(a, b), torch.cholesky_solve(b, linalg.cholesky(definite(x[:, :1])))], -1
        )

    check(function, seeded(2, 3, 4, 4))


def test_lu_that_is_used_again() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        lu, pivots = linalg.lu_factor(regular(x))
        ways = [(True, False), (True, True), (False, False), (False, True)]
        return torch.cat(
            [linalg.lu_solve(lu, pivots, x, left=left, adjoint=adjoint) for left, adjoint in ways], -1
        )

    check(function, seeded(2, 9, 9))


def test_info_says_where_it_failed() -> None:
    x = torch.eye(12).repeat(3, 1, 1)
    x[1, 10, 10], x[2, 3, 3] = -1, 0
    for function in (lambda x: linalg.cholesky_ex(x).info, lambda x: linalg.lu_factor_ex(x).info):
        assert torch.equal(in_engine(function, x), function(x))


@pytest.mark.parametrize("function", [linalg.cholesky, linalg.inv, lambda x: linalg.solve(x, x)])
def test_a_matrix_that_has_no_result_is_an_error(function: Callable) -> None:
    x = torch.zeros(3, 3)
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*(singular|positive definite)"):
        in_engine(function, x)


def test_matrices_that_are_not_finite() -> None:
    x = seeded(2, 3, 3)
    x[0, 0, 0] = torch.nan
    values = in_engine(linalg.svdvals, x)
    assert values[0].isnan().all()
    assert values[1].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (1, 1), (0, 3, 3), (2, 0, 0)])
def test_eigenvalues_of_any_matrix(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1))

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return *linalg.eig(x), linalg.eigvals(x)

    torch._dynamo.reset()
    options = {"require_full_compilation": True, "check_speed": False}
    values, vectors, alone = torch.compile(function, backend="ingot", fullgraph=True, options=options)(x)
    expected = linalg.eig(x)
    assert values.dtype == vectors.dtype == expected.eigenvectors.dtype
    assert vectors.shape == expected.eigenvectors.shape
    exact = x.to(vectors.dtype)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype in (torch.float32, torch.complex64) else {}
    torch.testing.assert_close(exact @ vectors, vectors * values.unsqueeze(-2), **close)
    torch.testing.assert_close(sorted_by_parts(values), sorted_by_parts(expected.eigenvalues), **close)
    torch.testing.assert_close(alone, values, **close)
    torch.testing.assert_close(
        torch.linalg.vector_norm(vectors, dim=-2), torch.ones_like(values.real), **close
    )


def sorted_by_parts(values: torch.Tensor) -> list[complex]:
    lines = values.reshape(-1, max(1, values.shape[-1])).tolist()
    return [z for line in lines for z in sorted(line, key=lambda z: (round(z.real, 3), z.imag))]


def test_eigenvalues_of_a_matrix_that_is_not_finite() -> None:
    x = seeded(2, 3, 3)
    x[0, 0, 0] = torch.nan
    values = in_engine(lambda x: torch.view_as_real(linalg.eigvals(x)), x)
    assert values[0].isnan().all()
    assert values[1].isfinite().all()


def test_symbolic_sizes() -> None:
    class Solve(torch.nn.Module):
        def forward(self, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return linalg.solve(definite(x), b) + linalg.inv(definite(x)) @ b

    n, k = torch.export.Dim("n", min=2, max=64), torch.export.Dim("k", min=2, max=64)
    program = torch.export.export(
        Solve(), (seeded(3, 6, 6), seeded(3, 6, 2)), dynamic_shapes=({1: n, 2: n}, {1: n, 2: k})
    )
    compiled = ingot.dynamo.compile(program, require_full_compilation=True)
    for size, columns in ((6, 2), (40, 9)):
        x, b = seeded(3, size, size), seeded(3, size, columns)
        assert torch.allclose(compiled(x, b), Solve()(x.double(), b.double()).float(), rtol=1e-4, atol=1e-5)
