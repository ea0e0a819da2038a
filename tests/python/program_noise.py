# SPDX-License-Identifier: Apache-2.0
"""Which results of a program depend on rounding, and which torch leaves undefined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# dtype -> relative noise of each result, which an engine's other roundings must not exceed by much
_NOISE = {torch.float64: 1e-14, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Noise(TorchDispatchMode):
    """Multiplies the result of each operator by 1 + noise: shows which results depend on rounding. With `is_uniform` all
    noise of a run has one sign, which shows results that stay unless several elements on an edge fall to the same side."""

    def __init__(self, seed: int, is_uniform: bool = False) -> None:
        super().__init__()
        self.is_uniform = is_uniform
        self.generator = torch.Generator().manual_seed(seed // 2)
        self.sign = 1 - 2 * (seed % 2)
        self.met_undefined = False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        schema = function._schema
        if schema.name in _CENTERED:
            args = (self.disturbed(args[0]), *args[1:])
        result = function(*args, **(kwargs or {}))
        with torch.utils._python_dispatch._disable_current_modes():
            self.look(schema.name, args, result)
            if schema.name in _SUMS:
                self.met_undefined |= _cancels(function, args, kwargs or {}, result)
            if schema.name in _CENTERED and "norm" in schema.name:
                self.met_undefined |= _is_rounding(result)
        computes = all(value.alias_info is None for value in schema.returns)
        if computes or (schema.is_mutable and isinstance(result, torch.Tensor)):
            for value in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(value, torch.Tensor) and value.dtype in _NOISE and not _moves(function):
                    self.disturb(value)
        return result

    def look(self, name: str, args: tuple, result: Any) -> None:
        """Records what torch or C++ leaves undefined, such as integers made of floats that they cannot hold, and what kernels of
        torch contradict each other in: GELU of infinity is NaN in f32 and infinity in f64; whether the mean of var_mean is
        infinite or NaN depends on where infinities stand, and which terms of a Fourier transform; inverses of matrices that
        are singular but for roundings; the integer of a quantized NaN; and the mode of values with NaN, which torch sorts by `<`."""
        if name.startswith("aten::index_put") and not (len(args) > 3 and args[3]):
            self.met_undefined |= _has_duplicates(args[1])
        if name in ("aten::gelu", "aten::var_mean", "aten::std_mean") or name.startswith("aten::_fft"):
            self.met_undefined |= bool(args[0].isinf().any())
        if name in ("aten::prod", "aten::cumprod"):
            self.met_undefined |= _depends_on_order(args[0], args[1] if len(args) > 1 else None)
        if name in ("aten::signbit", "aten::copysign"):
            self.met_undefined |= bool(torch.as_tensor(args[-1]).isnan().any())
        if name.startswith(("aten::linalg_inv", "aten::linalg_solve", "aten::_linalg_solve")):
            self.met_undefined |= _is_nearly_singular(args[0])
        if name.startswith(("quantized_decomposed::quantize", "aten::mode")):
            self.met_undefined |= bool(args[0].isnan().any())
        for source in _becoming_integers(name, args, result):
            limit = 2.0**63 if result.dtype is torch.int64 else 2.0**31
            self.met_undefined |= not bool((source.double().abs() < limit).all())

    def disturbed(self, value: torch.Tensor) -> torch.Tensor:
        with torch.utils._python_dispatch._disable_current_modes():
            copy = value.clone()
        if copy.dtype in _NOISE:
            self.disturb(copy)
        return copy

    def disturb(self, value: torch.Tensor) -> None:
        noise = torch.rand(value.shape, generator=self.generator, dtype=torch.float64)
        noise = 1 - noise / 2 if self.is_uniform else noise * 2 - 1
        factor = 1 + self.sign * noise * _NOISE[value.dtype]
        with torch.utils._python_dispatch._disable_current_modes():
            value.copy_(value.double() * factor)


def _is_nearly_singular(matrices: torch.Tensor) -> bool:
    if not matrices.numel() or not bool(torch.isfinite(matrices).all()):
        return False
    condition = torch.linalg.cond(matrices.to(torch.float64))
    return not bool((condition < 1e-3 / torch.finfo(matrices.dtype).eps).all())


def _becoming_integers(name: str, args: tuple, result: Any) -> list[torch.Tensor]:
    """The floats that an operator writes as integers: those it converts, and those it copies into a tensor of integers, as
    `copy_`, `slice_scatter` and others do."""
    if not isinstance(result, torch.Tensor) or result.dtype not in _INTEGERS:
        return []
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    writes = name == "aten::_to_copy" or (bool(tensors) and tensors[0].dtype == result.dtype)
    return [value for value in tensors if writes and value.is_floating_point()]


def _has_duplicates(indices: Sequence[torch.Tensor | None]) -> bool:
    """Whether one element is written twice: which value stays is undefined."""
    given = [index for index in indices if index is not None and index.dtype != torch.bool]
    if not given:
        return False
    rows = torch.stack([index.flatten() for index in torch.broadcast_tensors(*given)], 1)
    return len(rows.unique(dim=0)) < len(rows)


def _cancels(function: Any, args: tuple, kwargs: dict, result: torch.Tensor) -> bool:
    """Whether nothing but roundings is left of a sum: then its order decides whether it is zero, and its sign."""
    if not args[0].is_floating_point() or not result.is_floating_point():
        return False
    terms = function(args[0].abs(), *args[1:], **kwargs).double()
    return bool(
        (
            torch.isfinite(terms)
            & (terms > 0)
            & (result.double().abs() < 4 * torch.finfo(result.dtype).eps * terms)
        ).any()
    )


def _is_rounding(centered: Any) -> bool:
    """Whether an element equals the mean that a norm subtracts, but for roundings: whether it becomes zero is left to the sum's order."""
    result = centered[0] if isinstance(centered, (tuple, list)) else centered
    computed_in = torch.float64 if result.dtype == torch.float64 else torch.float32
    return bool(((result != 0) & (result.double().abs() < 4 * torch.finfo(computed_in).eps)).any())


_SUMS = {f"aten::{name}" for name in (
    "sum", "mean", "cumsum", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
)}  # fmt: skip


# They subtract a mean: of an element that equals it only roundings are left, to which noise of the result adds nothing. So
# the operand is disturbed too.
_CENTERED = {f"aten::{name}" for name in (
    "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "var", "std", "var_mean", "std_mean",
)}  # fmt: skip


def _depends_on_order(factors: torch.Tensor, dim: int | None) -> bool:
    """Whether a partial product overflows or vanishes in one order of the factors and not in another."""
    if not factors.is_floating_point() or not factors.numel():
        return False
    limits = torch.finfo(torch.float64 if factors.dtype == torch.float64 else torch.float32)
    digits = factors.double().abs().log2()
    digits = digits.flatten() if dim is None else digits.movedim(dim, 0)
    above, below = digits.clamp(min=0).sum(0), digits.clamp(max=0).sum(0)
    overflows = (above >= math.log2(limits.max)) & (below < 0)
    vanishes = (below <= math.log2(limits.smallest_normal)) & (above > 0)
    return bool((overflows | vanishes).any())


_EXACT = (
    "clone", "cat", "stack", "index", "gather", "copy", "full", "ones", "zeros", "arange", "flip", "roll", "neg",
    "abs", "where", "repeat", "pad", "fill", "select", "slice", "relu", "floor", "ceil", "round", "trunc", "sign",
    "maximum", "minimum", "amax", "amin", "sort", "topk", "max", "min", "masked", "clamp", "tril", "triu",
    "embedding", "_to_copy", "lift", "empty", "scalar", "constant", "rot90", "put", "isnan", "detach", "alias",
)  # fmt: skip


_ADDS = ("index_add", "index_reduce", "scatter_add", "scatter_reduce")


def _moves(function: Any) -> bool:
    """Whether an operator is exact, by its name."""
    own = function._schema.name.removeprefix("aten::")
    return own.startswith(_EXACT) and not own.startswith(_ADDS)
