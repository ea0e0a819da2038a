# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of complex matrices in engines, against eager: what has one result, and products of what has several."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from accuracy import assert_accurate
from rebuilt import joined, rebuilt_svd
from torch import linalg
from whole_functions import in_engine

_Function = Callable[[torch.Tensor], torch.Tensor]


def seeded(*shape: int, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.complex128, generator=torch.Generator().manual_seed(7)).to(dtype)


def check(function: _Function, z: torch.Tensor) -> None:
    def reals(z: torch.Tensor) -> torch.Tensor:
        result = function(z)
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result

    assert_accurate(in_engine(reals, [z]), reals(z), reals(z.to(torch.complex128)))


def eye(z: torch.Tensor) -> torch.Tensor:
    return torch.eye(z.shape[-1], dtype=z.dtype)


def definite(z: torch.Tensor) -> torch.Tensor:
    """Hermitian and positive definite, and no worse conditioned than its size."""
    return z @ z.mH / z.shape[-1] + 2 * eye(z)


def regular(z: torch.Tensor) -> torch.Tensor:
    """Needs pivots, since its large elements are off the diagonal."""
    return z / 4 + z.shape[-1] * eye(z).roll(1, 0)


def triangle(z: torch.Tensor) -> torch.Tensor:
    return z.triu() + 2 * z.shape[-1] * eye(z)


def rebuilt_eigh(z: torch.Tensor, uplo: str = "L") -> torch.Tensor:
    values, vectors = linalg.eigh(definite(z), UPLO=uplo)
    return joined(
        (vectors * values.unsqueeze(-2)) @ vectors.mH, vectors.mH @ vectors, values.unsqueeze(-2) + 0j
    )


def every_lu_solve(z: torch.Tensor) -> torch.Tensor:
    lu, pivots = linalg.lu_factor(regular(z))
    ways = [(True, False), (True, True), (False, False), (False, True)]
    return torch.cat(
        [linalg.lu_solve(lu, pivots, z, left=left, adjoint=adjoint) for left, adjoint in ways], -1
    )


SQUARE: dict[str, _Function] = {
    "cholesky": lambda z: linalg.cholesky(definite(z)) + linalg.cholesky(definite(z), upper=True),
    "cholesky_solve": lambda z: torch.cholesky_solve(z, linalg.cholesky(definite(z))),
    "cholesky_inverse": lambda z: torch.cholesky_inverse(
        linalg.cholesky(definite(z), upper=True), upper=True
    ),
    "det": lambda z: linalg.det(regular(z) / z.shape[-1]),
    "eigh": rebuilt_eigh,
    "eigh_upper": lambda z: rebuilt_eigh(z, "U"),
    "eigvalsh": lambda z: linalg.eigvalsh(definite(z)),
    "exponential": lambda z: linalg.matrix_exp(z / z.shape[-1]),
    "inverse": lambda z: linalg.inv(regular(z)),
    "lu": lambda z: joined(*linalg.lu(regular(z))),
    "lu_solve": every_lu_solve,
    "pinv_hermitian": lambda z: linalg.pinv(definite(z), hermitian=True),
    "power": lambda z: linalg.matrix_power(regular(z) / z.shape[-1], -2),
    "products_with_q": lambda z: (
        torch.ormqr(*torch.geqrf(z), z, transpose=True) + torch.ormqr(*torch.geqrf(z), z, left=False)
    ),
    "slogdet": lambda z: torch.stack(linalg.slogdet(regular(z))),
    "solve": lambda z: linalg.solve(regular(z), z),
    "solve_right": lambda z: linalg.solve(regular(z), z, left=False),
    "solve_vector": lambda z: linalg.solve(regular(z), z[..., 0]),
    "triangular": lambda z: linalg.solve_triangular(triangle(z), z, upper=True),
    "triangular_right": lambda z: linalg.solve_triangular(
        z.tril() / 9, z, upper=False, left=False, unitriangular=True
    ),
}
ANY: dict[str, _Function] = {
    "lu": lambda z: joined(*linalg.lu(z)),
    "norms": lambda z: torch.stack([linalg.matrix_norm(z, 2), linalg.matrix_norm(z, "nuc")]),
    "pinv": linalg.pinv,
    "qr": lambda z: joined(*linalg.qr(z)),
    "qr_complete": lambda z: joined(*linalg.qr(z, "complete")),
    "reflections": lambda z: joined(torch.geqrf(z)[0]) + torch.geqrf(z)[1].sum(-1, keepdim=True),
    "svd": rebuilt_svd,
    "svd_full": lambda z: rebuilt_svd(z, True),
    "svdvals": linalg.svdvals,
}


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name: str) -> None:
    for n in (1, 5, 19):
        check(SQUARE[name], seeded(2, n, n))


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("shape", [(3, 5, 4), (4, 9), (20, 11)], ids=str)
def test_any_matrices(name: str, shape: tuple[int, ...]) -> None:
    check(ANY[name], seeded(*shape))


def test_wide_numbers() -> None:
    names = ("cholesky", "solve", "pinv_hermitian", "inverse")
    check(
        lambda z: torch.cat([SQUARE[name](z) for name in names], -2),
        seeded(2, 12, 12, dtype=torch.complex128),
    )


def test_batches_broadcast() -> None:
    def function(z: torch.Tensor) -> torch.Tensor:
        a, b = regular(z[:, :1]), z[0, :, :, :3]
        factor = linalg.cholesky(definite(z[:, :1]))
        return torch.cat([linalg.solve(a, b), torch.cholesky_solve(b, factor)], -1)

    check(function, seeded(2, 3, 4, 4))


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 3), (3, 4, 0), (0, 3, 3)], ids=str)
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    def function(z: torch.Tensor) -> torch.Tensor:
        square = z @ z.mH
        parts = [
            linalg.pinv(z),
            linalg.det(square),
            linalg.inv(regular(square)),
            linalg.cholesky(definite(square)),
        ]
        return torch.cat([part.flatten() for part in parts])

    check(function, seeded(*shape))


def test_imaginary_parts_of_the_diagonal_do_not_count() -> None:
    """LAPACK reads one triangle of a Hermitian matrix, and the real part of its diagonal."""

    def function(z: torch.Tensor) -> torch.Tensor:
        h = definite(z) + 3j * eye(z)
        return torch.cat(
            [linalg.cholesky(h), linalg.cholesky(h + z.triu(1)), linalg.eigvalsh(h).unsqueeze(-2)]
        )

    check(function, seeded(6, 6))


def test_info_says_where_it_failed() -> None:
    z = eye(seeded(12, 12)).repeat(3, 1, 1)
    z[1, 10, 10], z[2, 3, 3] = -1, 0
    for function in (
        lambda z: linalg.cholesky_ex(z).info,
        lambda z: linalg.lu_factor_ex(z).info,
        lambda z: linalg.inv_ex(z).info,
    ):
        assert torch.equal(in_engine(function, [z]), function(z))


@pytest.mark.parametrize("function", [linalg.cholesky, linalg.inv, lambda z: linalg.solve(z, z)])
def test_a_matrix_that_has_no_result_is_an_error(function: Callable) -> None:
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*(singular|positive definite)"):
        in_engine(function, [torch.zeros(3, 3, dtype=torch.complex64)])


def test_determinants_of_singular_matrices() -> None:
    z = seeded(2, 4, 4)
    z[0, :, 2] = 0
    check(lambda z: torch.stack([linalg.det(z), linalg.slogdet(z).sign]), z)
    assert in_engine(lambda z: linalg.slogdet(z).logabsdet, [z])[0] == -torch.inf


def test_matrices_that_are_not_finite() -> None:
    z = seeded(2, 3, 3)
    z[0, 0, 0] = complex(0, torch.nan)
    for function in (linalg.svdvals, lambda z: linalg.matrix_exp(z).abs()):
        values = in_engine(function, [z])
        assert values[0].isnan().all()
        assert values[1].isfinite().all()


def test_symbolic_sizes() -> None:
    torch._dynamo.reset()
    options = {"require_full_compilation": True, "check_speed": False}

    def function(z: torch.Tensor) -> torch.Tensor:
        return linalg.solve(definite(z), z) + linalg.pinv(z).mH @ linalg.qr(z).R

    compiled = torch.compile(function, backend="ingot", dynamic=True, fullgraph=True, options=options)
    for n in (6, 9, 17):
        z = seeded(3, n, n)
        assert torch.allclose(compiled(z), function(z.to(torch.complex128)).to(z.dtype), rtol=1e-3, atol=1e-3)
