# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers beside their cuts, far away and of special values; products of many factors; singular matrices."""

from __future__ import annotations

import math

import pytest
import torch
from whole_functions import in_engine

_INVERSES = (torch.asin, torch.acos, torch.atan, torch.asinh, torch.acosh, torch.atanh)


def test_extreme_magnitudes() -> None:
    """No square of a part overflows or vanishes."""
    sizes = torch.tensor([1e-30, 1e-3, 1.0, 1e3, 1e30])
    parts = torch.stack(torch.meshgrid(sizes, -sizes, indexing="ij"), -1).reshape(-1, 2)

    def function(x: torch.Tensor) -> torch.Tensor:
        z = torch.view_as_complex(x)
        return torch.view_as_real(
            torch.stack([z.abs() + 0 * z, z.sqrt(), z.log(), z.sgn(), 1 / z, z / z.flip(0)])
        )

    eager, actual = function(parts), in_engine(function, [parts])
    exact = function(parts.double())
    inside = (exact.abs() < 1e38) & (exact.abs() > 1e-37) & torch.isfinite(eager)
    torch.testing.assert_close(actual[inside].double(), exact[inside], rtol=1e-5, atol=1e-7)


def test_inverse_functions_beside_their_cuts_and_far_away() -> None:
    """Signs of zeros choose the side of a cut; near 1, -1, i and -i most formulas cancel, and far away their squares overflow."""
    sizes = [0.0, 1e-30, 1e-6, 0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 2.0, 50.0, 1e7, 1e9, 1e20]
    parts = [sign * size for size in sizes for sign in (1, -1)]
    z = torch.tensor([complex(x, y) for x in parts for y in parts], dtype=torch.complex64)
    results = in_engine(lambda z: tuple(function(z) for function in _INVERSES), [z])
    for function, actual in zip(_INVERSES, results, strict=True):
        exact = torch.view_as_real(function(z.to(torch.complex128)))
        found = torch.view_as_real(actual).double()
        assert torch.equal(torch.signbit(found), torch.signbit(exact)) or function is torch.acos
        inside = torch.isfinite(exact)  # of the logarithmic poles of atan and atanh
        assert torch.equal(inside, torch.isfinite(found))
        torch.testing.assert_close(found[inside], exact[inside], rtol=1e-6, atol=1e-15)


def test_inverse_functions_of_special_values() -> None:
    parts = [0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan]
    z = torch.tensor([complex(x, y) for x in parts for y in parts], dtype=torch.complex128)
    results = in_engine(lambda z: tuple(function(z) for function in _INVERSES), [z])
    for function, actual in zip(_INVERSES, results, strict=True):
        expected = torch.view_as_real(function(z))
        torch.testing.assert_close(
            torch.view_as_real(actual), expected, rtol=1e-12, atol=1e-12, equal_nan=True
        )


@pytest.mark.parametrize("count", [0, 1, 2, 7, 64, 100])
def test_running_products(count: int) -> None:
    z = torch.polar(torch.ones(3, count), torch.arange(3.0 * count).reshape(3, count))
    actual = in_engine(lambda z: z.cumprod(1) + z, [z])
    torch.testing.assert_close(actual, z.cumprod(1) + z, rtol=1e-4, atol=1e-4)


def test_inverses_of_singular_matrices() -> None:
    """The first column that depends on those before it is the one that torch reports."""
    z = torch.polar(torch.rand(4, 4), torch.rand(4, 4) * 6)
    z[:, 2] = 0
    actual = in_engine(lambda z: torch.linalg.inv_ex(z)[1], [z])
    assert actual.item() == torch.linalg.inv_ex(z)[1].item() == 3
    with pytest.raises(Exception, match="singular"):
        in_engine(torch.linalg.inv, [z])
