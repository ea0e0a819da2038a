# SPDX-License-Identifier: Apache-2.0
"""Quantized models that are converted to another dtype afterwards: what eager runs is built, and the rest has an error with a line."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from small_models import Around
from torch import nn

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
ROWS = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
LAYERS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "convolution": (lambda: nn.Sequential(nn.ReLU(), nn.Conv2d(3, 4, 3)), IMAGES),
    "without bias": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU()), IMAGES),
    "groups": (lambda: nn.Conv2d(3, 6, 3, groups=3), IMAGES),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 2, 2), IMAGES),
    "linear": (lambda: nn.Sequential(nn.Linear(64, 8), nn.ReLU()), ROWS),
    "norm": (lambda: nn.Sequential(nn.Linear(64, 8, bias=False), nn.LayerNorm(8)), ROWS),
}


def quantized(name: str) -> nn.Module:
    layer, x = LAYERS[name]
    torch.manual_seed(2)
    return ingot.quantize(layer().eval(), [x])


@pytest.mark.parametrize("of_inputs", [torch.float32, None], ids=["inputs of f32", "inputs alike"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", [*LAYERS, "wrapped"])
@torch.no_grad()
def test_what_eager_rejects_has_an_error_of_ingot(
    name: str, dtype: torch.dtype, of_inputs: torch.dtype | None
) -> None:
    layers = "convolution" if name == "wrapped" else name
    model, x = quantized(layers), LAYERS[layers][1].to(of_inputs or dtype)
    model = (Around(model) if name == "wrapped" else model).to(dtype)
    want, message = outcome(model, x)
    if want is None:
        with pytest.raises(ingot.UserError, match=r"INGOT-U020.*float") as caught:
            ingot.compile(model, inputs=[x])
        assert message in str(caught.value)
        assert caught.value.node
    else:
        torch.testing.assert_close(ingot.compile(model, inputs=[x])(x), want, rtol=0.05, atol=0.05)


def outcome(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor | None, str]:
    """The result of torch, or the first line of its error."""
    try:
        return model(x), ""
    except Exception as error:  # of several classes
        return None, str(error).splitlines()[0]


def test_the_error_has_the_node_and_the_line() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(3, 4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.convolution(x).relu()

    model = ingot.quantize(Net().eval(), [IMAGES]).to(torch.bfloat16)
    with pytest.raises(ingot.UserError, match="convolution_bias is bfloat16") as caught:
        ingot.compile(model, inputs=[IMAGES])
    assert caught.value.code == "INGOT-U020"
    assert caught.value.node == "conv2d"
    assert caught.value.source.startswith(f"{__file__}:")


def test_other_errors_of_graphs_are_torchs() -> None:
    model = quantized("convolution")
    with pytest.raises(Exception, match="Guard failed") as caught:
        ingot.compile(model, inputs=[IMAGES[:1]])
    assert not isinstance(caught.value, ingot.Error)
