# SPDX-License-Identifier: Apache-2.0
"""Every elementwise function of torch on special values, in all pairs, and over the whole range of exponents."""

from __future__ import annotations

import math
import os

import ingot
import pytest
import torch
from elementwise import FUNCTIONS, differences, in_engine, operand_count, operands
from exact_functions import EXACT, exact_value

_LONG = os.environ.get("INGOT_LONG") == "1"
_DTYPES = (torch.float32, torch.float64) + ((torch.float16, torch.bfloat16) if _LONG else ())


# Conversions to integers are tested where the integer can hold the number: beyond, C++ leaves them undefined.
_CONVERSIONS = {"byte": 255, "char": 127, "short": 2**15 - 1, "int": 2**31 - 128, "long": 2**62}
_REMAINDERS = ("fmod", "remainder", "__rmod__")  # eager's vectors have NaN where quotients are large

# Up to where eager ends: it takes a step for each degree, and zeta's for each integer below 0. What larger degrees become
# in an int64 depends on the processor.
_FARTHEST = 1e5


def _where_eager_ends(name: str, given: list[torch.Tensor]) -> list[torch.Tensor]:
    if "polynomial" in name:
        return [value[given[1].abs() < _FARTHEST] for value in given]
    if name == "special.zeta":
        return [value[~(given[1] < -_FARTHEST)] for value in given]
    return given


def _correct(name: str, exact: torch.Tensor, given: list[torch.Tensor], places: torch.Tensor) -> None:
    """Where torch's fp64 is not exact, and there is a real value: not of negative operands of some."""
    is_real = name.startswith(("special.airy", "special.bessel_j")) or "polynomial" in name
    for k in places.tolist():
        at = [value[k].item() for value in given]
        is_of_zeta = name == "special.zeta" and at[0] > 1 and at[1] < 0 and at[0] % 1 == 0 != at[1] % 1
        if all(map(math.isfinite, at)) and (is_real or is_of_zeta or min(at) > 0):
            exact[k] = exact_value(name, *at)


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
        given = _where_eager_ends(name, operands(name, dtype))
        if name in _CONVERSIONS:
            given = [given[0][given[0].double().abs() <= _CONVERSIONS[name]].abs()]  # f16 has no 2 ** 31
        try:
            actual = in_engine(function, given)
        except ingot.UnsupportedError:
            continue
        eager = function(*given)
        ran += 1
        exact = function(*(value.double() for value in given))
        different = differences(name, given, actual, eager, exact)
        if name in EXACT:
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


def _beside_multiples(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Dividends that are nearly multiples of the divisors, with quotients up to more bits than the dtype has."""
    generator = torch.Generator().manual_seed(3)
    bits = 1 - int(math.log2(torch.finfo(dtype).eps))
    factors = [1, 2, 3, 7, 1000, *(2**k + d for k in range(bits - 3, bits + 3) for d in (-1, 0, 1))]
    multiples, divisors = [], []
    for exponent in (0, -20, 20, int(math.log2(torch.finfo(dtype).tiny)) - bits + 4):
        divisor = torch.rand(20, generator=generator, dtype=torch.float64) + 0.5
        divisor = torch.ldexp(divisor, torch.tensor(exponent)).to(dtype)
        for factor in factors:
            multiples.append((divisor.double() * factor).to(dtype))
            divisors.append(divisor)
    a, b = torch.cat(multiples), torch.cat(divisors)
    up, down = torch.tensor([math.inf, -math.inf], dtype=dtype)
    a = torch.cat([a, torch.nextafter(a, up), torch.nextafter(a, down)])
    return torch.cat([a, -a]), b.repeat(6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_remainders_beside_multiples(dtype: torch.dtype) -> None:
    a, b = _beside_multiples(dtype)
    expected = [_exact_remainder(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    actual = in_engine(torch.fmod, [a, b])
    assert torch.equal(actual, torch.tensor(expected, dtype=dtype))
    assert torch.equal(actual.signbit(), a.signbit())


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


@pytest.mark.parametrize("exponents", [torch.int8, torch.int64], ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32], ids=str
)
def test_powers_of_two_multiply_exactly(dtype: torch.dtype, exponents: torch.dtype) -> None:
    """Where the power alone is infinite or 0, too; and integers do not widen halves."""
    values = torch.tensor([0, 1, 3, -5, 40, 1000], dtype=dtype)
    x = torch.cat([values, values * 2.0**-20]) if dtype.is_floating_point else values
    steps = torch.tensor([-120, -30, -3, 0, 2, 12, 40, 120], dtype=exponents)
    x, exponent = x.repeat_interleave(len(steps)), steps.repeat(len(x))
    expected = torch.ldexp(x, exponent)
    actual = in_engine(torch.ldexp, [x, exponent])
    assert actual.dtype == expected.dtype
    assert torch.equal(actual, expected)
