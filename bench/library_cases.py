# SPDX-License-Identifier: Apache-2.0
"""Layers that NVIDIA's libraries may compute: products of BERT-base and Llama 1B, convolutions of ResNet-50 and MobileNetV2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Product:
    dtype: torch.dtype
    rows: int
    columns: int
    depth: int
    behind: str  # the sums

    def layer(self) -> nn.Module:
        return nn.Linear(self.depth, self.columns, bias="bias" in self.behind)

    def input(self) -> torch.Tensor:
        return torch.randn(self.rows, self.depth)


@dataclass(frozen=True)
class Convolution:
    channels: int
    results: int
    image: int  # height and width
    window: int
    behind: str = "bias and relu"
    stride: int = 1
    groups: int = 1
    batch: int = 32
    dims: int = 2
    dtype: torch.dtype = torch.float16

    def layer(self) -> nn.Module:
        kind = {2: nn.Conv2d, 3: nn.Conv3d}[self.dims]
        return kind(
            self.channels, self.results, self.window, self.stride, self.window // 2, groups=self.groups
        )

    def input(self) -> torch.Tensor:
        return torch.randn(self.batch, self.channels, *[self.image] * self.dims)


PRODUCTS = {
    "BERT attention's output": Product(torch.float16, 4096, 768, 768, "bias and residual"),
    "BERT second linear": Product(torch.float16, 4096, 768, 3072, "bias and residual"),
    "BERT queries, keys, values": Product(torch.float16, 4096, 2304, 768, "bias"),
    "Llama attention's output": Product(torch.bfloat16, 512, 2048, 2048, "residual"),
    "Llama down": Product(torch.bfloat16, 512, 2048, 8192, "residual"),
    "Llama gate and up": Product(torch.bfloat16, 512, 16384, 2048, ""),
}
CONVOLUTIONS = {
    "ResNet-50 b32 stem": Convolution(3, 64, 224, 7, stride=2),
    "ResNet-50 b32 56x56 1x1 in": Convolution(256, 64, 56, 1),
    "ResNet-50 b32 56x56 3x3": Convolution(64, 64, 56, 3),
    "ResNet-50 b32 56x56 1x1 out": Convolution(64, 256, 56, 1, "bias, residual and relu"),
    "ResNet-50 b32 28x28 3x3": Convolution(128, 128, 28, 3),
    "ResNet-50 b32 14x14 3x3": Convolution(256, 256, 14, 3),
    "ResNet-50 b32 14x14 1x1 out": Convolution(256, 1024, 14, 1, "bias, residual and relu"),
    "ResNet-50 b32 7x7 3x3": Convolution(512, 512, 7, 3),
    "ResNet-50 b32 shortcut": Convolution(512, 1024, 28, 1, "bias", stride=2),
    "MobileNetV2 b32 expand": Convolution(24, 144, 56, 1, "bias and relu6"),
    "MobileNetV2 b32 project": Convolution(144, 24, 56, 1, "bias and residual"),
    "MobileNetV2 b32 last": Convolution(320, 1280, 7, 1, "bias and relu6"),
    "ResNeXt-50 b32 28x28 3x3 of 32 groups": Convolution(256, 256, 28, 3, groups=32),
    "R3D-18 b4 16x28x28 3x3x3": Convolution(128, 128, 28, 3, batch=4, dims=3),
}
CASES: dict[str, Product | Convolution] = PRODUCTS | CONVOLUTIONS


class Layer(nn.Module):
    """The layer of a case, with what is behind it; a residual lies channels last, as between the layers of a network."""

    def __init__(self, case: Product | Convolution) -> None:
        super().__init__()
        self.layer, self.behind = case.layer(), case.behind

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        y = self.layer(x)
        y = y if residual is None else y + residual.movedim(-1, 1)
        if "relu6" in self.behind:
            return nn.functional.relu6(y)
        return torch.relu(y) if "relu" in self.behind else y
