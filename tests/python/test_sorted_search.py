# SPDX-License-Identifier: Apache-2.0
"""searchsorted and bucketize equal eager's in every sequence: sorted or not, with NaN anywhere, infinities, signed zeros, and empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ingot
import pytest
import torch
from torch import nn

_FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
_INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
_SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 1e-41, 65504.0]


class Search(nn.Module):
    """Every form of a search in lines: both sides, int32, reordered lines, one line for all values."""

    def forward(
        self, lines: torch.Tensor, values: torch.Tensor, order: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        first = lines[0]
        return (
            torch.searchsorted(lines, values),
            torch.searchsorted(lines, values, right=True),
            torch.searchsorted(lines, values, side="right", out_int32=True),
            torch.searchsorted(lines, values, sorter=order),
            torch.searchsorted(lines, values, sorter=order, side="left"),
            torch.bucketize(values, first),
            torch.bucketize(values, first, right=True, out_int32=True),
            torch.searchsorted(first, values.flatten()[0]),
        )


def special_lines(dtype: torch.dtype, size: int, seed: int) -> torch.Tensor:
    """Six lines: sorted, sorted with NaN last, reversed, random, all equal, and with special values anywhere."""
    generator = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point:
        lines = torch.randint(0, 100, (6, size), generator=generator).to(dtype)
        lines[5] = torch.randint(torch.iinfo(dtype).min, torch.iinfo(dtype).max, (size,), generator=generator)
    else:
        lines = torch.randn(6, size, generator=generator).to(dtype)
        which = torch.randint(0, len(_SPECIAL), (2, size), generator=generator)
        special = torch.tensor(_SPECIAL).to(dtype)[which]
        lines[1], lines[5] = special[0], torch.where(which[1] % 2 == 0, special[1], lines[5])
    lines[0], lines[1] = lines[0].sort().values, lines[1].sort().values
    lines[2] = lines[2].sort(descending=True).values
    lines[4] = lines[4, :1] if size else lines[4]
    return lines


def looked_for(lines: torch.Tensor, seed: int) -> torch.Tensor:
    """Elements of the lines, their neighbours, and special values."""
    generator = torch.Generator().manual_seed(seed)
    own = lines[:, torch.randint(0, lines.shape[1], (9,), generator=generator)] if lines.shape[1] else lines
    near = torch.randint(-3, 100, (6, 9), generator=generator).to(lines.dtype)
    if lines.dtype.is_floating_point:
        near = torch.cat([near, torch.tensor(_SPECIAL).to(lines.dtype).expand(6, -1)], 1)
    return torch.cat([own, near], 1)


def check(
    call: Callable[..., Sequence[torch.Tensor]],
    lines: torch.Tensor,
    values: torch.Tensor,
    order: torch.Tensor,
) -> None:
    for position, (got, wanted) in enumerate(
        zip(call(lines, values, order), Search()(lines, values, order), strict=True)
    ):
        assert got.dtype == wanted.dtype
        assert torch.equal(got, wanted), f"result {position} of lines of {lines.shape[1]}"


def arguments(dtype: torch.dtype, size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lines = special_lines(dtype, size, seed)
    order = torch.stack(
        [torch.randperm(size, generator=torch.Generator().manual_seed(seed + i)) for i in range(6)]
    )
    return lines, looked_for(lines, seed), order


@pytest.mark.parametrize("dtype", _FLOATS + _INTEGERS, ids=str)
def test_lines_of_any_size(dtype: torch.dtype) -> None:
    example = arguments(dtype, 12, 0)
    count, size = torch.export.Dim("count", max=4096), torch.export.Dim("size", max=4096)
    program = torch.export.export(
        Search(), example, dynamic_shapes=({1: size}, {1: count}, {1: size}), strict=False
    )
    compiled = ingot.compile(program, require_full_compilation=True)
    for seed, size in enumerate([2, 3, 4, 7, 8, 9, 31, 64, 100, 1023, 1024, 3000]):
        check(compiled, *arguments(dtype, size, seed))


@pytest.mark.parametrize("size", [0, 1, 2, 5, 16, 127])
def test_lines_of_one_size(size: int) -> None:
    compiled = ingot.compile(
        Search(), inputs=list(arguments(torch.float32, size, 0)), require_full_compilation=True
    )
    for seed in range(20):
        check(compiled, *arguments(torch.float32, size, seed))


class Mixed(nn.Module):
    """Dtypes are promoted as in torch.result_type: tensors without dims and numbers count less."""

    def forward(self, floats: torch.Tensor, integers: torch.Tensor) -> tuple[torch.Tensor, ...]:
        wide = floats.double()
        return (
            torch.bucketize(integers, floats),
            torch.bucketize(floats, integers),
            torch.bucketize(wide, floats),
            torch.searchsorted(floats, wide.sum()),
            torch.searchsorted(integers, wide[0]),
            torch.searchsorted(floats, 16777217),
            torch.searchsorted(integers, 2.5, right=True),
            torch.bucketize(0.1, floats),
            torch.bucketize(3, wide),
        )


def test_mixed_dtypes() -> None:
    floats = torch.tensor([0.1, 0.25, 1.0, 2.0, 2.5, 16777216.0])
    integers = torch.tensor([0, 1, 2, 2, 3, 16777217])
    compiled = ingot.compile(Mixed(), inputs=[floats, integers], require_full_compilation=True)
    for got, wanted in zip(compiled(floats, integers), Mixed()(floats, integers), strict=True):
        assert got.dtype == wanted.dtype
        assert torch.equal(got, wanted)
