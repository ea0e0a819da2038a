# SPDX-License-Identifier: Apache-2.0
"""Inputs of dtypes that eager refuses are refused at the build, and what eager runs is built."""

from __future__ import annotations

import ingot
import pytest
import torch
from torch import nn

DTYPES = (torch.float64, torch.float16, torch.float32, torch.int64, torch.int32, torch.bool)


class Call(nn.Module):
    def __init__(self, function: object, *weights: torch.Tensor) -> None:
        super().__init__()
        self.function, self.weights = function, nn.ParameterList(weights)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.weights)


MODELS = {
    "linear": (nn.Linear(8, 4), (2, 8)),
    "matmul": (Call(torch.matmul, torch.randn(8, 3)), (2, 8)),
    "mv": (Call(torch.mv, torch.randn(8)), (2, 8)),
    "transposed convolution": (nn.ConvTranspose2d(3, 4, 3), (1, 3, 8, 8)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (1, 4, 8)),
    "softmax": (nn.Softmax(-1), (2, 8)),
    "gelu": (nn.GELU(), (2, 8)),
    "later": (nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(8, 4)), (2, 8)),
    "distance": (Call(torch.cdist, torch.randn(3, 8)), (2, 8)),
    "singular values": (Call(torch.linalg.svdvals), (3, 3)),
    "quotient": (Call(lambda x: x // torch.full_like(x, 3)), (2, 8)),
    "sum": (Call(torch.sum), (2, 8)),
}


def runs(model: nn.Module, x: torch.Tensor) -> bool:
    try:
        model(x)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


@torch.no_grad()
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_build_takes_the_dtypes_that_eager_takes(name: str, dtype: torch.dtype) -> None:
    model, shape = MODELS[name][0].eval(), MODELS[name][1]
    x = (torch.randn(shape) + 5 * torch.eye(*shape[-2:])).to(dtype)
    if runs(model, x):
        torch.testing.assert_close(
            ingot.compile(model, inputs=[x])(x), model(x), rtol=1e-2, atol=1e-2, equal_nan=True
        )
        return
    for build in (lambda: ingot.compile(model, inputs=[x]),
                  lambda: ingot.compile(model, inputs=[ingot.Input(shape, dtype=dtype)]),
                  lambda: ingot.compile(model, inputs=[x], require_full_compilation=True)):  # fmt: skip
        with pytest.raises(
            (ingot.UserError, RuntimeError, NotImplementedError)
        ):  # torch's, where its trace already fails
            build()


def test_the_refusal_names_the_input() -> None:
    with pytest.raises(
        ingot.UserError, match=r"input is float64\): mat1 and mat2 must have the same dtype"
    ) as error:
        ingot.compile(nn.Linear(8, 4).eval(), inputs=[torch.randn(2, 8).double()])
    assert error.value.code == "INGOT-U020"
    assert error.value.node == "linear"
