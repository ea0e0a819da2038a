# SPDX-License-Identifier: Apache-2.0
"""Operators at sizes that models have, one module each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

FLOATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}
Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], Made]


class Call(nn.Module):
    """A function of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def _layer(
    name: str, layer: Callable[[], nn.Module], *shape: int, dtypes: Iterable[str] = ("f32",)
) -> Iterable[Case]:
    for dtype in dtypes:
        kind = FLOATS[dtype]
        yield Case(f"{name} {dtype}", lambda kind=kind: (layer().to(kind), (torch.randn(*shape).to(kind),)))


def _call(
    name: str, function: Callable[..., Any], *shapes: tuple[int, ...], dtypes: Iterable[str] = ("f32",)
) -> Iterable[Case]:
    for dtype in dtypes:
        kind = FLOATS[dtype]
        yield Case(
            f"{name} {dtype}",
            lambda kind=kind: (Call(function), tuple(torch.randn(*shape).to(kind) for shape in shapes)),
        )


def _with(name: str, function: Callable[..., Any], make: Callable[[], tuple[torch.Tensor, ...]]) -> Case:
    return Case(name, lambda: (Call(function), make()))


def _products() -> Iterable[Case]:
    yield from _layer("linear 128x768 768", lambda: nn.Linear(768, 768), 128, 768, dtypes=FLOATS)
    yield from _layer("linear 1x768 3072", lambda: nn.Linear(768, 3072), 1, 768, dtypes=FLOATS)
    yield from _layer("linear 64x256 17", lambda: nn.Linear(256, 17), 64, 256)
    yield from _call("matmul 256", torch.matmul, (256, 256), (256, 256), dtypes=FLOATS)
    yield from _call("matmul 12x128x64 64x128", torch.matmul, (12, 128, 64), (12, 64, 128), dtypes=FLOATS)
    yield from _call("matmul A.t 256", lambda a, b: a.t() @ b, (256, 256), (256, 256))
    yield from _call("matmul A.t 1024x64 512", lambda a, b: a.t() @ b, (1024, 64), (1024, 512))
    yield from _call("matmul A.mT 12x64x128", lambda a, b: a.mT @ b, (12, 64, 128), (12, 64, 128))
    yield from _call("matmul B.t 256", lambda a, b: a @ b.t(), (256, 256), (256, 256))
    yield from _call("attention 12x128x64", functional.scaled_dot_product_attention, (1, 12, 128, 64), (1, 12, 128, 64),
                     (1, 12, 128, 64), dtypes=("f32", "bf16", "f16"))  # fmt: skip


class Experts(nn.Module):
    """The product of a mixture of experts, of rows that are sorted by expert."""

    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, hidden, width) / width**0.5)

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return torch.ops.transformers.grouped_mm_fallback(x, self.weight.transpose(-2, -1), ends)


def _experts() -> Iterable[Case]:
    import transformers.integrations.moe  # noqa: F401 registers the operator

    def made(experts: int, rows: int, width: int, hidden: int, dtype: torch.dtype) -> Made:
        counts = torch.randint(0, experts, (rows,)).bincount(minlength=experts)
        ends = counts.cumsum(0).to(torch.int32)
        return Experts(experts, width, hidden).to(dtype), (torch.randn(rows, width).to(dtype), ends)

    for dtype in ("f32", "bf16", "f16"):
        for sizes in (
            (8, 16, 1024, 2048),
            (8, 512, 768, 2048),
            (16, 128, 256, 512),
            (64, 16, 2048, 768),
            (64, 512, 1024, 768),
        ):
            name = "experts {} rows {} {}x{} ".format(*sizes) + dtype
            yield Case(name, lambda sizes=sizes, dtype=dtype: made(*sizes, FLOATS[dtype]))


def _convolutions() -> Iterable[Case]:
    every = tuple(FLOATS)
    yield from _layer("conv 3x3 64 56", lambda: nn.Conv2d(64, 64, 3, padding=1), 1, 64, 56, 56, dtypes=every)
    yield from _layer(
        "conv 1x1 64-256 56", lambda: nn.Conv2d(64, 256, 1), 1, 64, 56, 56, dtypes=("f32", "bf16")
    )
    yield from _layer(
        "conv 7x7 s2 3-64 224", lambda: nn.Conv2d(3, 64, 7, 2, 3), 1, 3, 224, 224, dtypes=("f32", "bf16")
    )
    yield from _layer(
        "conv 16x16 s16 3-768 224", lambda: nn.Conv2d(3, 768, 16, 16), 1, 3, 224, 224, dtypes=("f32", "bf16")
    )
    yield from _layer("conv1d 5 256 200", lambda: nn.Conv1d(256, 256, 5, padding=2), 1, 256, 200)
    for channels, groups, size in ((128, 32, 56), (256, 32, 28), (512, 32, 14), (64, 2, 56), (96, 24, 28)):
        yield from _layer(f"conv 3x3 {channels}/{groups} {size}",
                          lambda c=channels, g=groups: nn.Conv2d(c, c, 3, padding=1, groups=g), 1, channels, size, size)  # fmt: skip
    for channels, window, size in ((96, 3, 56), (96, 5, 56), (96, 7, 56), (384, 7, 14), (64, 31, 28)):
        yield from _layer(f"depthwise {window}x{window} {channels} {size}",
                          lambda c=channels, k=window: nn.Conv2d(c, c, k, padding=k // 2, groups=c), 1, channels, size, size)  # fmt: skip
    yield from _layer("depthwise 3x3 s2 96 56", lambda: nn.Conv2d(96, 96, 3, 2, 1, groups=96), 1, 96, 56, 56)
    yield from _layer(
        "conv_transpose 2x2 s2 128-64 28", lambda: nn.ConvTranspose2d(128, 64, 2, 2), 1, 128, 28, 28
    )
    yield from _layer(
        "conv_transpose 4x4 s2 p1 128-64 28", lambda: nn.ConvTranspose2d(128, 64, 4, 2, 1), 1, 128, 28, 28
    )
    yield from _layer("conv_transpose 3x3 s2 p1 o1 128-64 28", lambda: nn.ConvTranspose2d(128, 64, 3, 2, 1, 1), 1, 128, 28, 28,
                      dtypes=("f32", "bf16"))  # fmt: skip
    yield from _layer(
        "conv_transpose 3x3 s1 64 28", lambda: nn.ConvTranspose2d(64, 64, 3, 1, 1), 1, 64, 28, 28
    )
    yield from _layer(
        "conv_transpose1d 16 s8 p4 256-128 64", lambda: nn.ConvTranspose1d(256, 128, 16, 8, 4), 1, 256, 64
    )
    yield from _layer(
        "conv_transpose3d 2 s2 32-16 12", lambda: nn.ConvTranspose3d(32, 16, 2, 2), 1, 32, 12, 12, 12
    )
    yield from _layer(
        "conv_transpose depthwise 4x4 s2 21 28",
        lambda: nn.ConvTranspose2d(21, 21, 4, 2, 1, groups=21),
        1,
        21,
        28,
        28,
    )


def _places() -> Iterable[Case]:
    def rows() -> tuple[torch.Tensor, ...]:
        return torch.randn(1000, 64), torch.randint(0, 1000, (10000,)), torch.randn(10000, 64)

    def each() -> tuple[torch.Tensor, ...]:
        return torch.randn(1000, 64), torch.randint(0, 1000, (10000, 64)), torch.randn(10000, 64)

    yield _with("index_add 10000x64 f32", lambda x, i, s: torch.index_add(x, 0, i, s), rows)
    yield _with("index_add dim 1 f32", lambda x, i, s: torch.index_add(x, 1, i % 64, s[:1000, :64].repeat(1, 4)),
                lambda: (torch.randn(1000, 64), torch.randint(0, 64, (256,)), torch.randn(1000, 64)))  # fmt: skip
    yield _with("scatter_add 10000x64 f32", lambda x, i, s: torch.scatter_add(x, 0, i, s), each)
    yield _with("scatter_add expanded 10000x64 f32",
                lambda x, i, s: torch.scatter_add(x, 0, i[:, None].expand(-1, 64), s), rows)  # fmt: skip
    yield _with("scatter_reduce amax 10000x64 f32",
                lambda x, i, s: torch.scatter_reduce(x, 0, i, s, "amax"), each)  # fmt: skip
    yield _with("bincount-like scatter_add 100000 f32", lambda x, i, s: torch.scatter_add(x, 0, i, s),
                lambda: (torch.zeros(1000), torch.randint(0, 1000, (100000,)), torch.randn(100000)))  # fmt: skip
    yield _with("gather 1000x64 f32", lambda x, i: torch.gather(x, 0, i),
                lambda: (torch.randn(1000, 64), torch.randint(0, 1000, (10000, 64))))  # fmt: skip
    yield _with("embedding 30000x256 512 f32", lambda x, i: functional.embedding(i, x),
                lambda: (torch.randn(30000, 256), torch.randint(0, 30000, (512,))))  # fmt: skip


def _images() -> Iterable[Case]:
    def resized(mode: str, size: int, align: bool | None = None) -> Callable[..., Any]:
        return lambda x: functional.interpolate(x, size=(size, size), mode=mode, align_corners=align)

    yield from _call(
        "bilinear 64 28-56", resized("bilinear", 56, False), (1, 64, 28, 28), dtypes=("f32", "bf16")
    )
    yield from _call(
        "bilinear align 256 14-56", resized("bilinear", 56, True), (1, 256, 14, 14), dtypes=("f32", "bf16")
    )
    yield from _call(
        "bilinear 16 16-32", resized("bilinear", 32, False), (1, 16, 16, 16), dtypes=("f32", "bf16")
    )
    yield from _call("bilinear 21 64-512", resized("bilinear", 512, False), (1, 21, 64, 64))
    yield from _call("bicubic 3 64-128", resized("bicubic", 128, False), (1, 3, 64, 64))
    yield from _call("nearest 64 28-56", resized("nearest", 56), (1, 64, 28, 28))
    yield from _call("nearest 64 28-50", resized("nearest", 50), (1, 64, 28, 28))
    for dtype in ("f32", "bf16"):
        kind = FLOATS[dtype]
        yield _with(f"grid_sample 64 56 {dtype}", lambda x, g: functional.grid_sample(x, g, align_corners=False),
                    lambda kind=kind: (torch.randn(1, 64, 56, 56).to(kind), (torch.rand(1, 56, 56, 2) * 2 - 1).to(kind)))  # fmt: skip
    yield from _layer("max_pool 3 s2 64 112", lambda: nn.MaxPool2d(3, 2, 1), 1, 64, 112, 112)
    yield from _layer("avg_pool 2 64 56", lambda: nn.AvgPool2d(2), 1, 64, 56, 56)
    yield from _layer("adaptive_avg_pool 7 512 14", lambda: nn.AdaptiveAvgPool2d(7), 1, 512, 14, 14)


def _transforms() -> Iterable[Case]:
    fft = torch.fft
    yield from _call("rfft abs 400x512", lambda x: fft.rfft(x).abs(), (400, 512))
    yield from _call("fft2 real 128x768", lambda x: fft.fft2(x).real, (1, 128, 768))
    yield from _call("fft2 real 512x768", lambda x: fft.fft2(x).real, (1, 512, 768))
    yield from _call("irfft2 of rfft2 24x64x64", lambda x: fft.irfft2(fft.rfft2(x) * 2.0), (24, 64, 64))
    yield from _call("irfft of rfft 64x2048", lambda x: fft.irfft(fft.rfft(x) * 2.0), (64, 2048))
    yield from _call("fft 64x1000", lambda x: torch.view_as_real(fft.fft(torch.complex(x, x))), (64, 1000))


def _orders() -> Iterable[Case]:
    yield from _call("sort 1000000", lambda x: tuple(torch.sort(x)), (1000000,))
    yield from _call("sort 1000x100", lambda x: tuple(torch.sort(x)), (1000, 100), dtypes=("f32", "f64"))
    yield from _call("sort dim 0 1000x100", lambda x: tuple(torch.sort(x, dim=0)), (1000, 100))
    yield _with("sort 1000000 i64", lambda x: tuple(torch.sort(x)),
                lambda: (torch.randint(0, 1 << 40, (1000000,)),))  # fmt: skip
    yield from _call("topk 50 of 50000", lambda x: tuple(torch.topk(x, 50)), (4, 50000))
    yield from _call("argmax 128x1000", lambda x: torch.argmax(x, -1), (128, 1000))
    yield from _call("cumsum 128x1000", lambda x: torch.cumsum(x, -1), (128, 1000))


def _rows() -> Iterable[Case]:
    three = ("f32", "bf16", "f16")
    yield from _call("softmax 128x1000", lambda x: torch.softmax(x, -1), (128, 1000), dtypes=FLOATS)
    yield from _layer("layer_norm 128x768", lambda: nn.LayerNorm(768), 128, 768, dtypes=three)
    yield from _call("gelu 128x3072", functional.gelu, (128, 3072), dtypes=FLOATS)
    yield from _call("add 128x3072", torch.add, (128, 3072), (128, 3072), dtypes=FLOATS)
    yield from _call("sin 128x3072", torch.sin, (128, 3072), dtypes=("f32", "f64"))
    yield from _call("exp 128x3072", torch.exp, (128, 3072), dtypes=("f32", "f64"))
    yield from _call("mean dim 0 1000x768", lambda x: x.mean(0), (1000, 768), dtypes=three)
    yield from _call("var 128x1000", lambda x: x.var(-1), (128, 1000))
    yield from _call("transpose copy 1024", lambda x: x.t().contiguous(), (1024, 1024))


def cases() -> list[Case]:
    groups = (_products, _experts, _convolutions, _places, _images, _transforms, _orders, _rows)
    return [case for group in groups for case in group()]
