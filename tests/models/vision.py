# SPDX-License-Identifier: Apache-2.0
"""Plain definitions of vision models, by their papers' figures (torchvision has no CPU build for every platform)."""

from __future__ import annotations

import torch
from torch import nn


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    """ResNet v1.5 block: the stride is in the 3x3 convolution."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *_convolution(inputs, width, 1), nn.ReLU(), *_convolution(width, width, 3, stride), nn.ReLU(),
            *_convolution(width, outputs, 1),
        )  # fmt: skip
        fits = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if fits else nn.Sequential(*_convolution(inputs, outputs, 1, stride))
        self.activation = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """He et al. 2015, arXiv 1512.03385, table 1; 25.6 M parameters."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inputs = 64
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(blocks):
                layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
                inputs = 4 * width
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        expand = [*_convolution(inputs, width, 1), nn.ReLU6()] if expansion != 1 else []
        self.body = nn.Sequential(
            *expand,
            *_convolution(width, width, 3, stride, width),
            nn.ReLU6(),
            *_convolution(width, outputs, 1),
        )
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


class UNet(nn.Module):
    """Ronneberger et al. 2015, arXiv 1505.04597, figure 1, with padding, batch norm and half its widths; 7.8 M parameters."""

    def __init__(self, width: int = 32, depth: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(self._block(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(self._block(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)
        self.pool = nn.MaxPool2d(2)

    @staticmethod
    def _block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            *_convolution(inputs, outputs, 3), nn.ReLU(), *_convolution(outputs, outputs, 3), nn.ReLU()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped = []
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            skipped.append(x)
        for grow, block, skip in zip(self.grow, self.up, reversed(skipped[:-1]), strict=True):
            x = block(torch.cat([skip, grow(x)], dim=1))
        return self.head(x)


class MobileNetV2(nn.Module):
    """Sandler et al. 2018, arXiv 1801.04381, table 2; 3.5 M parameters."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_convolution(3, 32, 3, 2), nn.ReLU6()]
        inputs = 32
        rows = (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        )
        for expansion, outputs, blocks, stride in rows:
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, outputs, stride if block == 0 else 1, expansion))
                inputs = outputs
        layers += [*_convolution(inputs, 1280, 1), nn.ReLU6()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(1280, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean([2, 3]))


def randomize_statistics(model: nn.Module) -> nn.Module:
    """Batch norms with the statistics of a trained model: not mean 0 and variance 1."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(0.1 * torch.randn(module.running_mean.shape, generator=generator))
            module.running_var.copy_(0.5 + torch.rand(module.running_var.shape, generator=generator))
            module.weight.data.copy_(0.5 + torch.rand(module.weight.shape, generator=generator))
            module.bias.data.copy_(0.1 * torch.randn(module.bias.shape, generator=generator))
    return model
