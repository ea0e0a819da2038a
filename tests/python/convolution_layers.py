# SPDX-License-Identifier: Apache-2.0
"""Convolutions with what may follow them, for tests of convolutions by a library."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

_CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_ACTIVATIONS = {
    "": lambda x: x,
    "relu": functional.relu,
    "relu6": functional.relu6,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
}


@dataclass(frozen=True)
class Case:
    name: str
    channels: int
    results: int
    image: tuple[int, ...]
    window: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    batch: int = 2
    bias: bool = True
    residual: bool = False
    activation: str = ""

    def apply(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        residual: torch.Tensor | None = None,
    ) -> torch.Tensor:
        convolve = _CONVOLUTIONS[len(self.image)]
        y = convolve(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        y = y if residual is None else y + residual
        return _ACTIVATIONS[self.activation](y)

    def input(self, batch: int | None = None) -> torch.Tensor:
        return torch.randn(self.batch if batch is None else batch, self.channels, *self.image)

    def parameters(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """With sums of about 1."""
        weight = torch.randn(self.results, self.channels // self.groups, *self.window)
        return weight / weight[0].numel() ** 0.5, torch.randn(self.results) if self.bias else None


CASES = [
    Case("plain", 16, 24, (9, 7), (3, 3), bias=False),
    Case("bias", 16, 24, (9, 7), (3, 3), padding=1),
    Case("point", 32, 16, (8, 8), (1, 1), activation="relu"),
    Case("strided", 16, 8, (11, 13), (3, 2), stride=2, padding=2, activation="relu"),
    Case("dilated", 16, 8, (11, 13), (3, 3), padding=2, dilation=2),
    Case("groups", 32, 64, (7, 9), (3, 3), padding=1, groups=4, activation="relu"),
    Case("groups_of_four", 32, 32, (7, 9), (3, 3), padding=1, groups=8),
    Case("residual", 16, 24, (9, 7), (3, 3), padding=1, residual=True, activation="relu"),
    Case("residual_alone", 16, 24, (9, 7), (3, 3), padding=1, bias=False, residual=True),
    Case("bounded", 16, 24, (9, 7), (3, 3), padding=1, activation="relu6"),
    Case("silu", 16, 24, (9, 7), (3, 3), padding=1, activation="silu"),
    Case("sigmoid", 16, 24, (9, 7), (3, 3), padding=1, activation="sigmoid"),
    Case("tanh", 16, 24, (9, 7), (3, 3), padding=1, activation="tanh"),
    Case("gelu", 16, 24, (9, 7), (3, 3), padding=1, activation="gelu"),
    Case("odd_results", 16, 13, (9, 7), (3, 3), padding=1, activation="relu"),
    Case("line", 16, 24, (40,), (3,), padding=1, activation="relu"),
    Case("volume", 16, 24, (5, 9, 7), (3, 3, 3), padding=1, activation="relu"),
    Case("volume_strided", 8, 16, (6, 9, 7), (2, 3, 3), stride=2, padding=1, residual=True),
    Case("volume_of_groups", 32, 32, (4, 6, 6), (3, 3, 3), padding=1, groups=4),
    Case("one_image", 64, 64, (14, 14), (3, 3), padding=1, batch=1, residual=True, activation="relu"),
    Case("many_images", 16, 32, (14, 14), (3, 3), padding=1, batch=32, activation="relu"),
]
