# SPDX-License-Identifier: Apache-2.0
"""torch.special in engines, against eager: many arguments in each part of the domain, poles, infinities and NaN."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from accuracy import assert_accurate
from exact_functions import exact_value
from test_fourier import in_engine
from torch import special

CLOSE = {"rtol": 1e-9, "atol": 1e-11}
LINE = torch.cat(
    [torch.linspace(-20, 20, 801), torch.linspace(-1.25, 1.25, 101), torch.tensor([60.0, -60.0])]
).double()
EDGES = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, 2.0, 1e-300, -1e-300, 1e-9, 300.0, 700.0, math.inf, -math.inf, math.nan],
    dtype=torch.float64,
)
POSITIVE = torch.cat([LINE[LINE > 0], EDGES[EDGES >= 0]]).double()
ALL = torch.cat([LINE, EDGES.double()])
UNIT = torch.cat(
    [
        torch.linspace(0, 1, 401).double(),
        torch.tensor([1e-300, 1e-12, 1 - 1e-12, -0.5, 1.5, math.nan]).double(),
    ]
)

OF_ONE: dict[str, tuple[Callable, torch.Tensor]] = {
    "airy_ai": (special.airy_ai, LINE),
    "bessel_j0": (special.bessel_j0, LINE),
    "bessel_j1": (special.bessel_j1, LINE),
    "bessel_y0": (special.bessel_y0, POSITIVE[POSITIVE.isfinite()]),
    "bessel_y1": (special.bessel_y1, POSITIVE[POSITIVE.isfinite()]),
    "digamma": (special.digamma, ALL),
    "erfcx": (special.erfcx, torch.cat([LINE, POSITIVE])),
    "erfinv": (special.erfinv, torch.cat([UNIT, -UNIT])),
    "i0": (special.i0, ALL),
    "i0e": (special.i0e, ALL),
    "i1": (special.i1, ALL),
    "i1e": (special.i1e, ALL),
    "lgamma": (torch.lgamma, ALL),
    "log_ndtr": (special.log_ndtr, ALL),
    "modified_bessel_k0": (special.modified_bessel_k0, POSITIVE),
    "modified_bessel_k1": (special.modified_bessel_k1, POSITIVE),
    "ndtri": (special.ndtri, UNIT),
    "polygamma_1": (lambda x: special.polygamma(1, x), POSITIVE),
    "polygamma_3": (lambda x: special.polygamma(3, x), POSITIVE[POSITIVE > 1e-9]),
    "scaled_modified_bessel_k0": (special.scaled_modified_bessel_k0, POSITIVE),
    "scaled_modified_bessel_k1": (special.scaled_modified_bessel_k1, POSITIVE),
    "spherical_bessel_j0": (special.spherical_bessel_j0, ALL),
}
POLYNOMIALS = (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
)  # fmt: skip


def assert_close(function: Callable, *arguments: torch.Tensor, **tolerance: float) -> None:
    ours, eager = in_engine(function, *arguments), function(*arguments)
    torch.testing.assert_close(ours, eager, equal_nan=True, **(tolerance or CLOSE))


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_number(name: str) -> None:
    function, x = OF_ONE[name]
    if not name.startswith(("airy", "bessel")):  # torch's are exact enough here
        assert_close(function, x)
        return
    points = x[::5]
    exact = torch.tensor(
        [exact_value(f"special.{name}", value) for value in points.tolist()], dtype=torch.float64
    )
    torch.testing.assert_close(in_engine(function, points), exact, **CLOSE)
    torch.testing.assert_close(exact, function(points), rtol=0, atol=3e-6)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    x = torch.cat([torch.linspace(-1.5, 1.5, 61), torch.tensor([-1.0, 0.0, 1.0])]).double()
    degrees = torch.tensor([-1.0, 0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 12.0, 2.5]).double()
    assert_close(getattr(special, name), x[:, None], degrees)


def test_functions_of_two_numbers() -> None:
    a = torch.tensor([0.0, 1e-3, 0.5, 1.0, 3.0, 10.0, 80.0, math.inf]).double()
    x = torch.tensor([0.0, 1e-6, 0.1, 1.0, 2.5, 9.0, 81.0, 500.0, math.inf]).double()
    assert_close(special.gammainc, a[:, None], x)
    assert_close(special.gammaincc, a[:, None], x)
    order = torch.tensor([0.5, 1.0, 1.1, 2.0, 3.5, 20.0]).double()
    assert_close(
        special.zeta, order[:, None], torch.tensor([-1.5, -1.0, 0.0, 1e-3, 0.5, 1.0, 7.0, 100.0]).double()
    )


def test_zeta_far_below_zero() -> None:
    """From as far as torch's own, term by term, would not end."""
    order = torch.tensor([2.0, 3.0, 5.0]).double()
    near, far = (torch.tensor(q, dtype=torch.float64) for q in (-40.25, -1e12 - 0.5))
    assert_close(special.zeta, order, near)
    values = in_engine(special.zeta, order, far)
    torch.testing.assert_close(values.tolist(), [math.pi**2 - 1e-12, 0.0, 0.0], atol=1e-15, rtol=1e-14)


def test_narrow_dtypes_and_integers() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x) + special.i0(x).float() + torch.digamma(n)

    n = torch.arange(1, 9)
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.linspace(0.5, 4, 8).to(dtype)
        assert_accurate(in_engine(function, x, n), function(x, n), function(x.double(), n))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", [*OF_ONE, *POLYNOMIALS])
def test_integers_become_floating_first(name: str, dtype: torch.dtype) -> None:
    x = torch.arange(0 if dtype is torch.bool else 1, 4).to(dtype)
    if name in POLYNOMIALS:
        assert_close(getattr(special, name), x[:, None], torch.arange(4).to(dtype), rtol=1e-5, atol=3e-6)
        return
    function = OF_ONE[name][0]
    try:
        function(x)
    except RuntimeError:
        return  # torch has no such kernel
    assert_close(function, x, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_next_values_of_all_halves(dtype: torch.dtype) -> None:
    """Bits as eager's, from each value towards values of both signs."""
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)[:, None]
    to = torch.tensor([0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan], dtype=dtype)
    ours, eager = in_engine(torch.nextafter, x, to), torch.nextafter(x, to)
    assert torch.equal(ours.isnan(), eager.isnan())
    numbers = ~eager.isnan()
    assert torch.equal(ours.view(torch.int16)[numbers], eager.view(torch.int16)[numbers])
