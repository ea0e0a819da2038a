# SPDX-License-Identifier: Apache-2.0
"""Functions by mpmath where torch's own in fp64 are not exact enough to judge others by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath


def _lower_gamma(a: Any, x: Any) -> Any:
    """mpmath's series do not end for huge operands: there nothing is left farther than 1 % from a (Chernoff's bound)."""
    if a > 1e20 and abs(x - a) > a / 100:
        return mpmath.mpf(1 if x > a else 0)
    return mpmath.gammainc(a, 0, x, regularized=True)


def _upper_gamma(a: Any, x: Any) -> Any:
    if a > 1e20 and abs(x - a) > a / 100:
        return mpmath.mpf(0 if x > a else 1)
    if a < 1e-20:  # Q(a, x) = a E1(x) (1 + O(a log x))
        return a * mpmath.e1(x)
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def _zeta(x: Any, q: Any) -> Any:
    below = mpmath.mpf(0)
    while q < 0:
        below, q = below + q ** -int(x), q + 1
    return below + (q**-x * (1 + (1 + 1 / q) ** -x) if x > 1000 else mpmath.zeta(x, q))


def _by_angle(
    above: Callable[[Any], Any], times: Callable[[Any], Any], over: Any
) -> Callable[[Any, Any], Any]:
    """A Chebyshev polynomial by the angle, which is complex outside of [-1, 1]; at its poles beside them."""

    def value(x: Any, n: Any) -> Any:
        angle = mpmath.acos(mpmath.mpc(x) * (1 - mpmath.mpf(10) ** -60))
        return (above(times(n) * angle) / above(over * angle)).real

    return value


def _by_recurrence(second: Callable[[Any], Any], following: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def value(x: Any, n: Any) -> Any:
        before, last = mpmath.mpf(1), second(x)
        for k in range(1, int(n)):
            before, last = last, following(k, x, last, before)
        return last if n >= 1 else mpmath.mpf(n > -1)

    return value


def _shifted(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, n: function(2 * x - 1, n)


_CHEBYSHEV = {
    "t": _by_angle(mpmath.cos, lambda n: n, 0),
    "u": _by_angle(mpmath.sin, lambda n: n + 1, 1),
    "v": _by_angle(mpmath.cos, lambda n: n + 0.5, mpmath.mpf(0.5)),
    "w": _by_angle(mpmath.sin, lambda n: n + 0.5, mpmath.mpf(0.5)),
}

# torch's have errors of 3e-6 at -2.1 (Ai), of up to 8e-7 beyond 5 (J0 and its family), of 5e-10 near 100, and of parts
# of the value for tiny first operands (the gamma functions), of many units for high degrees, and NaN for high
# orders of zeta. Below 0, Y has no real values.
EXACT: dict[str, Callable[..., Any]] = {
    "igamma": _lower_gamma,
    "igammac": _upper_gamma,
    "special.airy_ai": mpmath.airyai,
    "special.bessel_j0": lambda x: mpmath.besselj(0, x),
    "special.bessel_j1": lambda x: mpmath.besselj(1, x),
    "special.bessel_y0": lambda x: mpmath.bessely(0, x),
    "special.bessel_y1": lambda x: mpmath.bessely(1, x),
    "special.modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "special.scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "special.laguerre_polynomial_l": _by_recurrence(
        lambda x: 1 - x, lambda k, x, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1)
    ),
    "special.legendre_polynomial_p": _by_recurrence(
        lambda x: x, lambda k, x, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1)
    ),
    "special.zeta": _zeta,
    **{f"special.chebyshev_polynomial_{kind}": function for kind, function in _CHEBYSHEV.items()},
    **{f"special.shifted_chebyshev_polynomial_{kind}": _shifted(function) for kind, function in _CHEBYSHEV.items()},
}  # fmt: skip


def exact_value(name: str, *operands: float) -> float:
    """Of finite operands in the domain; infinite where an fp64 number overflows."""
    with mpmath.workdps(100 if "polynomial" in name else 30):
        value = EXACT[name](*map(mpmath.mpf, operands))
        return float(value) if abs(value) < 1.8e308 else float(mpmath.sign(value)) * float("inf")
