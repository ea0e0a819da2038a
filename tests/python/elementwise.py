# SPDX-License-Identifier: Apache-2.0
"""All elementwise functions of torch's operator database, and the values on which they go wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from ingot.torch_backend import backend
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

FUNCTIONS = {
    f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op
    for op in op_db
    if isinstance(op, (BinaryUfuncInfo, UnaryUfuncInfo))
}


def operand_count(name: str) -> int:
    return 2 if isinstance(FUNCTIONS[name], BinaryUfuncInfo) else 1


def special_values(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    tiny, smallest = info.tiny, info.smallest_normal * info.eps
    points = [0.0, smallest, tiny, tiny * 1.5, math.sqrt(tiny), 1e-6, 0.1, 0.25, 0.5, 0.999, 1.0, 1 + info.eps, 1.5, 2.0, 2.5,
              3.0, math.pi, 7.0, 10.0, 20.0, 88.5, 104.0, 1e3, 30001.0, math.sqrt(info.max), info.max / 2, info.max,
              math.inf]  # fmt: skip
    signed = points + [-point for point in points] + [math.nan]
    return torch.tensor(signed, dtype=torch.float64).to(dtype)


def wide_values(count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Random signs and mantissas, exponents evenly over the whole range of the dtype."""
    generator = torch.Generator().manual_seed(seed)
    info = torch.finfo(dtype)
    low, high = math.log2(info.tiny) - 8, math.log2(info.max)
    exponents = torch.rand(count, generator=generator, dtype=torch.float64) * (high - low) + low
    signs = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    return (torch.exp2(exponents) * signs).to(dtype)


def operands(name: str, dtype: torch.dtype) -> list[torch.Tensor]:
    """Special values, in all pairs for functions of two; then wide ones."""
    special = special_values(dtype)
    if operand_count(name) == 1:
        return [torch.cat([special, wide_values(2000, dtype, 1)])]
    pairs = torch.cartesian_prod(special, special)
    return [torch.cat([pairs[:, i], wide_values(2000, dtype, 1 + i)]) for i in range(2)]


def engine_of(
    function: Callable[..., torch.Tensor], example: Sequence[torch.Tensor]
) -> Callable[..., torch.Tensor]:
    """By the way of torch.compile from where Dynamo gives its graph to the backend; UnsupportedError if torch would have to help."""
    graph = torch.fx.Graph()
    placeholders = [graph.placeholder(f"x{i}") for i in range(len(example))]
    graph.output([graph.call_function(lambda *x: function(*x), tuple(placeholders))])
    with torch.no_grad():
        compiled = backend(
            torch.fx.GraphModule({}, graph), example, options={"require_full_compilation": True}
        )
    return lambda *given: compiled(*given)[0]


def in_engine(function: Callable[..., torch.Tensor], given: Sequence[torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        return engine_of(function, given)(*given)


# dtype -> by how much a result may differ from the exact one, relatively
_TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


# max and min of two zeros may be either. Eager's softshrink of -0.0 is 0.0 in its vectors and -0.0 behind the last of them.
_ZEROS_OF_ANY_SIGN = ("fmax", "fmin", "maximum", "minimum", "max.binary", "min.binary", "nn.functional.relu6",
                      "nn.functional.softshrink")  # fmt: skip
_CANCELLING = ("nn.functional.tanhshrink",)  # x minus a value that rounds to x: exact only to a unit of x


def _steepness(name: str, given: Sequence[torch.Tensor], exact: torch.Tensor) -> torch.Tensor | float:
    """By how much a function changes for four units of its operand in f64, where that is more than units of the result.

    Of large negative numbers Ai is a wave, and polynomials have as many zeros as their degree.
    """
    units = 4 * torch.finfo(torch.float64).eps
    x = given[0].double()
    if name == "special.airy_ai":
        slope, height = x.abs() ** 0.25 / math.sqrt(math.pi), x.abs() ** -0.25 / math.sqrt(math.pi)
        return torch.where(x < -1, torch.minimum(slope * x.abs() * units, 2 * height), 0)
    if "polynomial" in name:
        return units * given[1].double().abs() * (1 + exact.abs())
    return 0.0


def differences(
    name: str,
    given: Sequence[torch.Tensor],
    actual: torch.Tensor,
    eager: torch.Tensor,
    exact: torch.Tensor,
) -> torch.Tensor:
    """Which elements are neither eager's, nor as near to the exact ones (fp64) as a small tolerance or four times eager's error.

    Zeros have eager's sign.
    """
    if not actual.is_floating_point():
        return actual != eager
    dtype = actual.dtype
    rounded = exact.to(dtype)
    best = torch.where(torch.isinf(rounded) | torch.isnan(rounded), rounded.double(), exact.double())
    same = (actual == eager) | (actual.isnan() & eager.isnan())
    error, eager_error = (actual.double() - best).abs(), (eager.double() - best).abs()
    smallest = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    right = (actual == rounded) | (actual.isnan() & best.isnan())
    right |= error <= _TOLERANCES[dtype] * best.abs() + 2 * smallest
    right |= torch.isfinite(eager_error) & (error <= 4 * eager_error)
    right |= error <= _steepness(name, given, best)
    zeros = (actual == 0) & (eager == 0) & (rounded == 0)
    if name in _CANCELLING:
        right |= error <= 2 * torch.finfo(dtype).eps * given[0].double().abs()
        zeros &= given[0] == 0  # others are what is left of a unit of x, of any sign
    wrong_sign = zeros & (actual.signbit() != eager.signbit()) & (name not in _ZEROS_OF_ANY_SIGN)
    return ~(same | right) | wrong_sign
