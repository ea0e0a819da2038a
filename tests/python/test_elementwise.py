# SPDX-License-Identifier: Apache-2.0
"""Every elementwise function of torch on special values, in all pairs, and over the whole range of exponents."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import ingot
import mpmath
import pytest
import torch
from elementwise import FUNCTIONS, differences, in_engine, operand_count, operands

_LONG = os.environ.get("INGOT_LONG") == "1"
_DTYPES = (torch.float32, torch.float64) + ((torch.float16, torch.bfloat16) if _LONG else ())


# Conversions to integers are tested where the integer can hold the number: beyond, C++ leaves them undefined.
_CONVERSIONS = {"byte": 255, "char": 127, "short": 2**15 - 1, "int": 2**31 - 128, "long": 2**62}
_REMAINDERS = ("fmod", "remainder", "__rmod__")  # eager's vectors have NaN where quotients are large


# torch's own are off by up to 5e-10 near 100 in fp64, and by parts of the value for tiny first operands.
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


_MORE_EXACT: dict[str, Callable[[Any, Any], Any]] = {"igamma": _lower_gamma, "igammac": _upper_gamma}


def _correct(name: str, exact: torch.Tensor, given: list[torch.Tensor], places: torch.Tensor) -> None:
    for k in places.tolist():
        operands_at = [value[k].item() for value in given]
        if all(0 < value < float("inf") for value in operands_at):
            with mpmath.workdps(40):
                exact[k] = float(_MORE_EXACT[name](*map(mpmath.mpf, operands_at)))


def _takes_tensors_alone(name: str, dtype: torch.dtype) -> bool:
    if dtype not in FUNCTIONS[name].supported_dtypes("cpu"):
        return False
    try:
        result = FUNCTIONS[name].op(*(torch.ones(2, dtype=dtype) for _ in range(operand_count(name))))
    except Exception:
        return False
    return isinstance(result, torch.Tensor) and not result.is_complex()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_special_and_wide_values(name: str) -> None:
    function, failures, ran = FUNCTIONS[name].op, [], 0
    for dtype in _DTYPES:
        if not _takes_tensors_alone(name, dtype):
            continue
        given = operands(name, dtype)
        if name in _CONVERSIONS:
            given = [given[0][given[0].abs() <= _CONVERSIONS[name]].abs()]
        try:
            actual = in_engine(function, given)
        except ingot.UnsupportedError:
            continue
        eager = function(*given)  # after that: eager's polynomials would take years
        ran += 1
        exact = function(*(value.double() for value in given))
        different = differences(name, given, actual, eager, exact)
        if name in _MORE_EXACT:
            _correct(name, exact, given, different.nonzero().flatten())
            different = differences(name, given, actual, eager, exact)
        if name in _REMAINDERS:
            different &= ~(eager.isnan() & actual.isfinite())
        wrong = different.nonzero().flatten()
        failures += [f"{name}{tuple(value[k].item() for value in given)} is {actual[k].item()!r}, eager has {eager[k].item()!r}, "
                     f"fp64 {exact[k].item()!r} ({len(wrong)} of {len(actual)}, {dtype})" for k in wrong[:6]]  # fmt: skip
    assert not failures, "\n" + "\n".join(failures)
    if ran == 0:
        pytest.skip("torch runs it")


def _exact_remainder(a: float, b: float) -> float:
    from fractions import Fraction

    quotient = Fraction(a) / Fraction(b)
    rest = Fraction(a) - int(quotient) * Fraction(b)  # int() truncates
    return float(rest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_remainders_are_exact(dtype: torch.dtype) -> None:
    """Against rational arithmetic: a quotient may have more bits than the dtype."""
    a, b = operands("fmod", dtype)
    chosen = torch.isfinite(a) & torch.isfinite(b) & (b != 0)
    a = torch.cat([torch.tensor([1e20, -1e20, 1e30, 5.0], dtype=dtype), a[chosen]])
    b = torch.cat([torch.tensor([3.0, 3.0, 7.0, -3.0], dtype=dtype), b[chosen]])
    expected = torch.tensor(
        [_exact_remainder(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], dtype=dtype
    )
    assert torch.equal(in_engine(torch.fmod, [a, b]), expected)
    expected = torch.where((expected != 0) & ((expected < 0) != (b < 0)), expected + b, expected)
    assert torch.equal(in_engine(torch.remainder, [a, b]), expected)
    floored = in_engine(lambda x, y: torch.div(x, y, rounding_mode="floor"), [a, b])
    eager = torch.div(a, b, rounding_mode="floor")
    assert torch.equal(floored[~eager.isnan()], eager[~eager.isnan()])
