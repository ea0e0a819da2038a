# SPDX-License-Identifier: Apache-2.0
"""Values that torch.compile with Ingot gives where rules of dtypes, rounding and strides decide: as eager's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from ingot.torch_backend import backend
from torch.nn import functional


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def just_in_time(function: Callable, **options: Any) -> Callable:
    return torch.compile(function, backend=backend, **options)


def complex_positions(x: torch.Tensor) -> torch.Tensor:
    turns = torch.polar(torch.ones(4), torch.arange(4.0))
    return torch.view_as_real(torch.view_as_complex(x) * turns * torch.complex(x[..., 0], x[..., 1])) + 1


def narrow_integers(x: torch.Tensor) -> tuple:
    far = x * 100 - 20
    return far.to(torch.uint8), far.to(torch.int8), far.to(torch.int16)


def whole_logarithms(x: torch.Tensor) -> tuple:
    powers = torch.exp2(torch.arange(24.0, device=x.device))
    return torch.log2(powers).long(), torch.log10(torch.tensor([1.0, 10, 1000])).long(), powers


def large_integers(x: torch.Tensor) -> tuple:
    whole = x.long() * 9007199254740993
    return whole.clamp(max=9223372036854775807), whole.clamp(min=9007199254740993), whole >> 70, whole << -1


def bools(x: torch.Tensor) -> tuple:
    yes = x > 0
    return torch.add(yes, True, alpha=0), yes.to(torch.uint8).all(), yes.to(torch.uint8).any(1)


def joined_choices(x: torch.Tensor) -> torch.Tensor:
    order = x[:, :, 0].argsort(1)
    chosen = torch.cat([x, x * 2], 1).gather(1, torch.cat([order, order + 4], 1)[..., None].expand(-1, -1, 2))
    return torch.cat([x[:, :1], chosen], 1) + torch.arange(9.0)[:, None]


def circles_of_what_is_left(x: torch.Tensor) -> torch.Tensor:
    return functional.pad(x, (-1, 1, -2, 1), mode="circular")


def slopes(x: torch.Tensor) -> tuple:
    return functional.prelu(x[0, 0, 0], torch.tensor([0.5])), functional.prelu(x, torch.ones(4) / 4)


def bags_without_their_padding(x: torch.Tensor) -> tuple:
    indices, offsets = torch.tensor([2, 1, 1, 0, 2, 2]), torch.tensor([0, 3, 4])
    return tuple(
        functional.embedding_bag(indices, x[..., 0], offsets, mode=mode, padding_idx=padding)
        for mode in ("sum", "mean", "max")
        for padding in (-1, 1, None)
    )


def resized_integers(x: torch.Tensor) -> torch.Tensor:
    image = torch.arange(16).reshape(1, 1, 4, 4) * 20 % 251 + (x[0, 0, 0] * 0).long()
    return functional.interpolate(image.to(torch.uint8), size=(3, 3), mode="bicubic")


def chunks_of_turned_memory(x: torch.Tensor) -> tuple:
    turned = (x * 2).permute(2, 0, 1)
    part = (x + 2)[1:2]
    return turned.as_strided((2, 3, 2), (3, 4, 1)), (x.transpose(0, 1) + 1).as_strided((5, 3), (1, 2), 2), \
        part.as_strided((4, 4), (4, 1)), turned.as_strided((0, 3), (9, 1))  # fmt: skip


def writes_into_turned_memory(x: torch.Tensor) -> tuple:
    turned = (x * 2).permute(2, 0, 1)
    return (
        torch.as_strided_scatter(turned, x[:1, :2] + 1, (1, 2, 2), (3, 4, 1)),
        torch.as_strided_scatter(x + 0, x[0, 0], (2,), (5,), 1),
        torch.as_strided_scatter(x + 0, x[0, 0, 0] * 3, (), (), 7),
        torch.as_strided_scatter(x + 0, x[:0, 0], (0, 2), (9, 1)),
    )


def repeats_that_are_data(x: torch.Tensor) -> tuple:
    counts = torch.tensor([2, 0, 1, 4])
    return (
        torch.repeat_interleave(x, counts, dim=1, output_size=7),
        torch.repeat_interleave(x, counts[:1], dim=2, output_size=4),
        torch.repeat_interleave(x[0, 0], counts[:2], output_size=2),
    )


def distances_of_a_batch(x: torch.Tensor) -> tuple:
    return (
        torch.cdist(x, x[0]),
        torch.cdist(x[0], x, p=1.0),
        functional.bilinear(x, x, x[:, :2, :].contiguous()),
    )


def positions_from_the_end(x: torch.Tensor) -> tuple:
    """What takes negative indices in eager mode."""
    last = torch.tensor([0, -1])
    return (
        x.index_fill(1, last, 2),
        x.index_fill(-1, last, torch.tensor(3.0)),
        x[:, last],
        x.clone().index_put_((last, last), torch.tensor(5.0)),
        x.take(last),
        x.put(last, torch.tensor([1.0, 2.0])),
        torch.take_along_dim(x, last[None, :, None], 1),
    )


def labels_that_end(x: torch.Tensor) -> tuple:
    """torch's own decomposition counts the labels behind the first -1 too."""
    labels = torch.tensor([[0, 3, -1, 1], [-1, 0, 0, 0], [2, 1, 0, 3]])
    rows = (
        functional.multilabel_margin_loss(x[..., 0], labels, reduction=way) for way in ("mean", "sum", "none")
    )
    return (*rows, functional.multilabel_margin_loss(x[0, :, 0], labels[0]))


def few_terms(x: torch.Tensor) -> torch.Tensor:
    return (torch.tensor([[0.42], [-0.5], [0.08]]) + x[0, 0] * 0).sum(0) * 1e8  # the order of the sum shows


@pytest.mark.parametrize(
    "function",
    [
        chunks_of_turned_memory,
        writes_into_turned_memory,
        repeats_that_are_data,
        distances_of_a_batch,
        few_terms,
        labels_that_end,
        positions_from_the_end,
        complex_positions,
        narrow_integers,
        whole_logarithms,
        large_integers,
        bools,
        joined_choices,
        circles_of_what_is_left,
        slopes,
        bags_without_their_padding,
        resized_integers,
    ],
)
def test_answers_are_eager_s(function: Callable) -> None:
    x = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0)) * 3
    torch.testing.assert_close(just_in_time(function)(x), function(x))


def test_sums_of_narrow_integers_are_wide() -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.einsum("ij->i", x)

    x = torch.full((2, 3), 2**30, dtype=torch.int32)
    compiled = torch.compile(Sum(), backend=backend)
    assert torch.equal(compiled(x), Sum()(x))
    assert compiled(x).dtype == torch.int64


def test_sums_of_half_precision_are_rounded_once() -> None:
    def scores(mask: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.baddbmm(mask, a, b)

    a = torch.tensor([[[1.0, 2**-11]]], dtype=torch.float16)  # 1 + 2^-11 is not representable in f16
    b, mask = torch.ones(1, 2, 1, dtype=torch.float16), torch.full((1, 1, 1), 2**-11, dtype=torch.float16)
    assert torch.compile(scores, backend=backend)(mask, a, b).item() == 1 + 2**-10


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_norms_of_small_numbers(dtype: torch.dtype) -> None:
    """The default epsilon is of the dtype that torch computes in."""

    def norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, (4,))

    for scale in (1e-2, 1e-4):
        x = (torch.tensor([[1.0, -2.0, 3.0, 0.5]]) * scale).to(dtype)
        torch.testing.assert_close(torch.compile(norm, backend=backend)(x), norm(x))
