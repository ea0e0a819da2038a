# SPDX-License-Identifier: Apache-2.0
"""`ingot.quantize` of transposed convolutions: those whose windows do not overlap multiply integers."""

from __future__ import annotations

import ingot
import pytest
import torch
from test_quantize import batches, check, images
from torch import nn


class Growing(nn.Module):
    """The way up of a U-Net: windows side by side are quantized, those that overlap, are cropped or leave gaps are not."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.stem = nn.Conv2d(3, 12, 3, padding=1)
        self.down = nn.Conv2d(12, 10, 3, padding=1)
        self.grow = nn.ConvTranspose2d(10, 6, 2, 2)
        self.both = nn.Conv2d(18, 8, 3, padding=1)
        self.uneven = nn.ConvTranspose2d(8, 5, (1, 3), (1, 3), bias=False)
        self.overlap = nn.ConvTranspose2d(5, 4, 4, 2, padding=1)
        self.gaps = nn.ConvTranspose2d(4, 4, 1, 2, output_padding=1)
        self.groups = nn.ConvTranspose2d(4, 4, 2, 2, groups=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = torch.relu(self.stem(x))
        low = torch.relu(self.down(nn.functional.max_pool2d(skip, 2)))
        joined = torch.relu(self.both(torch.cat([skip, self.grow(low)], 1)))
        return self.groups(self.gaps(self.overlap(torch.relu(self.uneven(joined)))))


@pytest.mark.parametrize("weights", ["per_channel", "per_tensor"])
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
def test_transposed_convolutions_whose_windows_are_side_by_side(weights: str, cpu: str) -> None:
    model, x = Growing().eval(), images()
    program = ingot.quantize(model, batches(), weights=weights)
    compiled = ingot.compile(program, inputs=[x], cpu=cpu, require_full_compilation=True)
    result, step = program(x), model(x).abs().max() * 0.1
    assert (result - model(x)).abs().max() < step
    assert (compiled(x) - result).abs().max() < step / 5
    assert ingot.report(compiled).precisions == {"u8 with weights of i8": 5}
    strict = ingot.compile(program, inputs=[x], cpu=cpu, numerics="strict", require_full_compilation=True)
    assert (strict(x) - result).abs().max() < step / 5


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_of_sequences_and_volumes(dims: int) -> None:
    torch.manual_seed(dims)
    kind = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[dims - 1]
    model = kind(8, 4, 2, 2).eval()
    data = [torch.randn(2, 8, *[5] * dims, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    shape = [2, 8, *[5] * dims]
    dynamic = ingot.Input(min_shape=[1, 8, *[1] * dims], opt_shape=shape, max_shape=[4, 8, *[9] * dims])
    program = ingot.quantize(model, data, inputs=[dynamic])
    assert any("quantize_per_tensor" in str(node.target) for node in program.graph.nodes)
    compiled = ingot.compile(program, inputs=[dynamic], require_full_compilation=True)
    for size in (1, 4, 9):
        x = torch.randn(1, 8, *[size] * dims, generator=torch.Generator().manual_seed(size))
        torch.testing.assert_close(compiled(x), program(x), rtol=1e-4, atol=1e-4)


def test_a_matrix_may_be_the_weight_of_both_kinds_of_convolutions() -> None:
    """Each has its scales along the channels of its results."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(2)
            self.weight = nn.Parameter(torch.randn(8, 8, 2, 2) * torch.logspace(-1, 0, 8).view(-1, 1, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.conv_transpose2d(
                nn.functional.conv2d(x, self.weight, stride=2), self.weight, stride=2
            )

    model = Tied().eval()
    data = [torch.randn(2, 8, 8, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    check(ingot.quantize(model, data), model, data[0], 0.05)
