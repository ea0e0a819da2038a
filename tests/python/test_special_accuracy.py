# SPDX-License-Identifier: Apache-2.0
"""Special functions that engines compute in code: errors in units of the last place, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import pytest
import torch
from exact_functions import EXACT
from test_fourier import in_engine
from torch import special

mp = mpmath


def _improved(residue: Callable[[Any], Any], slope: Callable[[Any], Any], start: float) -> Any:
    """A zero by Newton's method from a value in f64 that is nearly right."""
    y = mp.mpf(start)
    for _ in range(3):
        y -= residue(y) / slope(y)
    return y


def _inverse_normal(p: Any) -> Any:
    density = lambda y: mp.exp(-y * y / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731
    if p <= 0.5:
        start = float(special.ndtri(torch.tensor(float(p), dtype=torch.float64)))
        return _improved(lambda y: mp.ncdf(y) - p, density, start)
    return -_inverse_normal(1 - p)


def _inverse_erf(x: Any) -> Any:
    start = float(special.erfinv(torch.tensor(float(x), dtype=torch.float64)))
    return _improved(lambda y: mp.erf(y) - x, lambda y: 2 / mp.sqrt(mp.pi) * mp.exp(-y * y), start)


@dataclass(frozen=True)
class Bound:
    """Of errors in units of the last place in f32 and f64. `zeros`: beside them, units of 1 count."""

    function: Callable[[torch.Tensor], torch.Tensor]
    exact: Callable[[Any], Any]
    low: float
    high: float
    single: float
    double: float
    zeros: bool = False


BOUNDS = {
    "bessel_j0": Bound(special.bessel_j0, lambda x: mp.besselj(0, x), -60, 60, 1, 8, True),
    "bessel_j1": Bound(special.bessel_j1, lambda x: mp.besselj(1, x), -60, 60, 1, 8, True),
    "bessel_y0": Bound(special.bessel_y0, lambda x: mp.bessely(0, x), 0, 60, 1, 8, True),
    "bessel_y1": Bound(special.bessel_y1, lambda x: mp.bessely(1, x), 0, 60, 1, 8, True),
    "digamma": Bound(torch.digamma, mp.digamma, -8, 30, 1, 8, True),
    "erfcx": Bound(special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), -9, 60, 1, 8),
    "erfinv": Bound(special.erfinv, _inverse_erf, -1, 1, 3, 3),
    "i0": Bound(special.i0, lambda x: mp.besseli(0, x), -80, 80, 1, 8),
    "i0e": Bound(special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), -80, 80, 1, 8),
    "i1": Bound(special.i1, lambda x: mp.besseli(1, x), -80, 80, 1, 8),
    "i1e": Bound(special.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), -80, 80, 1, 8),
    "lgamma": Bound(torch.lgamma, lambda x: mp.loggamma(x).real, -8, 30, 1, 8, True),
    "ndtri": Bound(special.ndtri, _inverse_normal, 0, 1, 4, 3, True),
}
COUNT = 300


def arguments(bound: Bound, dtype: torch.dtype) -> torch.Tensor:
    """In the range of most arguments, and of all magnitudes, denormal ones too, that are in the domain."""
    generator = torch.Generator().manual_seed(3)
    usual = torch.rand(COUNT, generator=generator, dtype=torch.float64) * (bound.high - bound.low) + bound.low
    info = torch.finfo(dtype)
    smallest = math.log2(info.tiny) - info.bits // 8
    exponents = torch.rand(COUNT, generator=generator, dtype=torch.float64) * (10 - smallest) + smallest
    sizes = torch.exp2(exponents)
    near_one = 1 - torch.exp2(exponents / 4)
    edges = torch.tensor(
        [info.tiny, 0.5, 1 - info.eps / 2, 0.4999999, 2.5, 8.0, 6.0, 700.0], dtype=torch.float64
    )
    x = torch.cat([usual, sizes, -sizes, near_one, edges, -edges]).to(dtype)
    if bound.low == 0 or bound.high == 1:
        x = x[(x > bound.low) & (x < bound.high)]
    return x[(x != 0) & ~((x < 0) & (x == x.round()))]


def units(dtype: torch.dtype, value: Any) -> Any:
    info = torch.finfo(dtype)
    exponent = max(mp.frexp(value)[1], math.frexp(info.tiny)[1])
    return mp.ldexp(mp.mpf(info.eps) / 2, exponent)


def errors(bound: Bound, dtype: torch.dtype) -> list[tuple[float, float, float]]:
    """Units, argument and result."""
    x = arguments(bound, dtype)
    found = []
    with mp.workdps(40):
        for argument, result in zip(x.tolist(), in_engine(bound.function, x).tolist(), strict=True):
            right = bound.exact(mp.mpf(argument))
            if abs(right) > torch.finfo(dtype).max:
                assert result == math.copysign(math.inf, right), (argument, result)
                continue
            unit = units(dtype, max(abs(right), 1) if bound.zeros else right)
            found.append((float(abs(mp.mpf(result) - right) / unit), argument, result))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_errors_in_units_of_the_last_place(name: str, dtype: torch.dtype) -> None:
    bound = BOUNDS[name]
    worst = max(errors(bound, dtype))
    assert worst[0] <= (bound.single if dtype == torch.float32 else bound.double), worst


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", BOUNDS)
def test_16_bits_are_rounded_once(name: str, dtype: torch.dtype) -> None:
    worst = max(errors(BOUNDS[name], dtype))
    assert worst[0] <= 0.52, worst


def gamma_arguments(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Orders and arguments of most magnitudes, arguments beside the order among them."""
    generator = torch.Generator().manual_seed(5)
    uniform = torch.rand(3, COUNT, generator=generator, dtype=torch.float64)
    order = torch.exp2(uniform[0] * 14 - 6)  # 1/64 to 256
    anywhere, beside = torch.exp2(uniform[1] * 14 - 7), order + (uniform[2] * 6 - 3) * order.sqrt()
    x = torch.cat([anywhere, beside.abs() + 1e-3])
    return order.repeat(2).to(dtype), x.to(dtype)


GAMMA_BOUNDS = {torch.float64: 2000, torch.float32: 0.52, torch.bfloat16: 0.51, torch.float16: 0.51}


@pytest.mark.parametrize("dtype", GAMMA_BOUNDS, ids=str)
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions(name: str, dtype: torch.dtype) -> None:
    order, x = gamma_arguments(dtype)
    results = in_engine(getattr(torch, name), order, x)
    worst = (0.0, 0.0, 0.0, 0.0)
    with mp.workdps(30):
        for a, argument, result in zip(order.tolist(), x.tolist(), results.tolist(), strict=True):
            right = EXACT[name](mp.mpf(a), mp.mpf(argument))
            worst = max(
                worst, (float(abs(mp.mpf(result) - right) / units(dtype, right)), a, argument, result)
            )
    assert worst[0] <= GAMMA_BOUNDS[dtype], worst
