# SPDX-License-Identifier: Apache-2.0
"""Factorizations of one large and of many small matrices, and special functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import linalg, special

from bench.operator_cases import FLOATS, Call, Case, Made

SIZES = ((256, 8), (32, 32), (1, 128), (1, 384))  # batch, and rows and columns of a matrix
OF_SQUARES: dict[str, Callable[..., Any]] = {
    "cholesky": linalg.cholesky,
    "cholesky_solve": lambda x: torch.cholesky_solve(x, x),
    "eigvalsh": lambda x: torch.ops.aten._linalg_eigh(x, "L", False)[0],
    "eigh": lambda x: linalg.eigh(x)[1],
    "inv": linalg.inv,
    "lu": lambda x: linalg.lu_factor(x)[0],
    "matrix_exp": lambda x: linalg.matrix_exp(x / x.shape[-1]),
    "qr": lambda x: linalg.qr(x)[0],
    "solve": lambda x: linalg.solve(x, x),
    "solve_triangular": lambda x: linalg.solve_triangular(x, x, upper=True),
    "svd": lambda x: linalg.svd(x)[0],
    "svdvals": lambda x: torch.ops.aten._linalg_svd(x, False, False)[1],
}
OF_ONE = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma erfcx erfinv gammaln i0 i0e i1 i1e log_ndtr
modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"""
OF_TWO = "gammainc gammaincc zeta"
POLYNOMIALS = "chebyshev_polynomial_t hermite_polynomial_h laguerre_polynomial_l legendre_polynomial_p"


def _definite(batch: int, size: int, kind: torch.dtype) -> torch.Tensor:
    x = torch.randn(batch, size, size, dtype=torch.float64)
    return (x @ x.mT / size + 2 * torch.eye(size)).to(kind)


def _matrices() -> Iterable[Case]:
    for name, function in OF_SQUARES.items():
        for batch, size in SIZES:
            for dtype in ("f32", "f64"):

                def made(f: Any = function, b: int = batch, n: int = size, d: str = dtype) -> Made:
                    return Call(f), (_definite(b, n, FLOATS[d]),)

                yield Case(f"{name} {batch}x{size}x{size} {dtype}", made)


def _special() -> Iterable[Case]:
    def inputs(count: int, dtype: str) -> tuple[torch.Tensor, ...]:
        return tuple(
            (torch.rand(128, 512) * 0.9 + 0.05).to(FLOATS[dtype]) * (k * 6 + 1) for k in range(count)
        )

    for dtype in ("f32", "f64"):
        for name in (OF_ONE + " " + OF_TWO + " " + POLYNOMIALS).split():
            function, count = getattr(special, name), 1 if name in OF_ONE.split() else 2
            yield Case(f"{name} {dtype}", lambda f=function, c=count, d=dtype: (Call(f), inputs(c, d)))
        yield Case(
            f"polygamma 2 {dtype}", lambda d=dtype: (Call(lambda x: special.polygamma(2, x)), inputs(1, d))
        )


def matrix_cases() -> list[Case]:
    return [*_matrices(), *_special()]
