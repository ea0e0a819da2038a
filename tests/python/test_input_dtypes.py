# SPDX-License-Identifier: Apache-2.0
"""Inputs of dtypes that eager rejects are rejected by the build, and what eager runs is built."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from lacking import negated
from torch import nn

pytestmark = pytest.mark.usefixtures("binding")

DTYPES = (torch.float64, torch.float16, torch.float32, torch.int64, torch.int32, torch.bool)


class Call(nn.Module):
    def __init__(self, function: object, *weights: torch.Tensor) -> None:
        super().__init__()
        self.function, self.weights = function, nn.ParameterList(weights)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.weights)


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


MODELS = {
    "linear": (nn.Linear(8, 4), (2, 8)),
    "matmul": (Call(torch.matmul, torch.randn(8, 3)), (2, 8)),
    "mv": (Call(torch.mv, torch.randn(8)), (2, 8)),
    "convolution": (nn.Conv2d(3, 4, 3), (1, 3, 8, 8)),
    "convolution without bias": (nn.Sequential(nn.Conv1d(3, 4, 3, bias=False), nn.ReLU()), (1, 3, 8)),
    "lstm": (_Recurrent(), (2, 4, 8)),
    "embedding": (Call(lambda x, table: nn.functional.embedding(x.abs(), table), torch.randn(99, 4)), (2, 4)),
    "transposed convolution": (nn.ConvTranspose2d(3, 4, 3), (1, 3, 8, 8)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (1, 4, 8)),
    "softmax": (nn.Softmax(-1), (2, 8)),
    "gelu": (nn.GELU(), (2, 8)),
    "later": (nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(8, 4)), (2, 8)),
    "distance": (Call(torch.cdist, torch.randn(3, 8)), (2, 8)),
    "operator that torch runs": (Call(negated), (3, 3)),
    "quotient": (Call(lambda x: x // torch.full_like(x, 3)), (2, 8)),
    "sum": (Call(torch.sum), (2, 8)),
    "layer norm": (nn.LayerNorm(8), (2, 8)),
    "group norm": (nn.GroupNorm(2, 4), (2, 4, 8)),
    "batch norm": (nn.BatchNorm1d(8), (2, 8)),
    "instance norm": (nn.InstanceNorm1d(4, affine=True), (2, 4, 8)),
    "instance norm that keeps statistics": (  # torch decomposes the whole program
        Call(
            lambda x, mean, variance, weight: nn.functional.instance_norm(
                x, mean + 0, variance + 0, weight, use_input_stats=True
            ),
            torch.zeros(4),
            torch.ones(4),
            torch.randn(4),
        ),
        (2, 4, 8),
    ),
    "half layer norm": (nn.LayerNorm(8).half(), (2, 8)),
    "addmm": (Call(torch.addmm, torch.randn(2, 8), torch.randn(8, 8)), (2, 8)),
    "addmm of a half": (Call(torch.addmm, torch.randn(2, 8).half(), torch.randn(8, 8)), (2, 8)),
    "addmv": (Call(lambda x, m: torch.addmv(x[0], m, x[1]), torch.randn(8, 8)), (2, 8)),
    "baddbmm": (Call(torch.baddbmm, torch.randn(2, 8, 4), torch.randn(2, 4, 8)), (2, 8, 8)),
    "cross": (Call(lambda x, y: torch.cross(x, y, 1), torch.randn(2, 3)), (2, 3)),
    "heaviside": (Call(torch.heaviside, torch.randn(2, 8)), (2, 8)),
    "index add": (Call(lambda x, y: x.index_add(0, torch.tensor([1, 0]), y), torch.randn(2, 8)), (2, 8)),
    "index copy": (Call(lambda x, y: x.index_copy(0, torch.tensor([1, 0]), y), torch.randn(2, 8)), (2, 8)),
    "index put": (Call(lambda x, y: x.index_put((torch.tensor([1, 0]),), y), torch.randn(2, 8)), (2, 8)),
    "entropy": (
        Call(lambda x, y: nn.functional.binary_cross_entropy(x.sigmoid(), y), torch.rand(2, 8)),
        (2, 8),
    ),
    "classes": (Call(lambda x, y: nn.functional.nll_loss(x, torch.tensor([1, 3]), y), torch.rand(8)), (2, 8)),
}


def runs(model: nn.Module, x: torch.Tensor) -> bool:
    try:
        model(x)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
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
        with pytest.raises(ingot.UserError):
            build()


def test_the_refusal_names_the_input() -> None:
    with pytest.raises(
        ingot.UserError, match=r"input is float64\): mat1 and mat2 must have the same dtype"
    ) as error:
        ingot.compile(nn.Linear(8, 4).eval(), inputs=[torch.randn(2, 8).double()])
    assert error.value.code == "INGOT-U020"
    assert error.value.node == "linear"


class _Nested(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"inner": inner})

    def forward(self, count: int, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return self.layers["inner"](pair[0] * count) + pair[1].sum()


def test_a_refusal_of_torchs_trace_names_input_module_and_line() -> None:
    """Torch's trace fails before there is a graph with nodes."""
    model = _Nested(nn.Sequential(nn.ReLU(), nn.Conv1d(3, 4, 3))).eval()
    with pytest.raises(ingot.UserError, match=r"pair is float16, pair is int64\): Input type") as error:
        ingot.compile(model, inputs=[2, (torch.randn(1, 3, 8).half(), torch.arange(3))])
    assert error.value.code == "INGOT-U020"
    assert error.value.node == "layers.inner.1"
    assert "test_input_dtypes.py" in error.value.source


def test_errors_of_other_causes_are_torchs() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(3, 7)

    for dtype in (torch.float16, torch.float32):
        with pytest.raises(RuntimeError, match="shape") as error:
            ingot.compile(Call(function), inputs=[torch.randn(4, 4).to(dtype)])
        assert not isinstance(error.value, ingot.Error)


class _Holder(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.outer = inner, nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(self.inner(x))


CONVERSIONS = {
    "half": lambda module: module.half(),
    "double": lambda module: module.double(),
    "to bf16": lambda module: module.to(torch.bfloat16),
    "to meta": lambda module: module.to("meta"),
    "like": lambda module: module.to(torch.empty(0, dtype=torch.float64)),
    "type": lambda module: module.type(torch.float16),
}


@torch.no_grad()
@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_compiled_modules_cannot_be_converted(name: str, in_parts: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), Call(negated if in_parts else torch.sin)).eval()
    x = torch.randn(2, 4)
    compiled = ingot.compile(model, inputs=[x])
    for module in (compiled, _Holder(compiled).eval()):
        expected = module(x)
        for same in (module.float(), module.to("cpu"), module.to("cpu", torch.float32), module.cpu()):
            torch.testing.assert_close(same(x), expected, rtol=0, atol=0)
        with pytest.raises(ingot.UserError, match="INGOT-U337"):
            CONVERSIONS[name](module)
        torch.testing.assert_close(module(x), expected, rtol=0, atol=0)


class _Binary(nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.function(a, b)


@pytest.mark.parametrize(
    "function",
    [torch.xlogy, torch.special.xlog1py, torch.atan2, torch.true_divide, torch.float_power, torch.pow, torch.copysign],
    ids=lambda function: function.__name__,
)  # fmt: skip
@pytest.mark.parametrize("integers", [torch.int64, torch.bool])
def test_integers_beside_floats_of_any_width(function: Callable, integers: torch.dtype) -> None:
    """Composites promote each step by itself: the dtype of the whole must be torch's all the same."""
    for floats in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        pair = ((torch.rand(3, 2) * 3 + 1).to(floats), (torch.rand(3, 2) * 3).to(integers))
        for given in (pair, pair[::-1]):
            expected = function(*given)
            engine = ingot.build(torch.export.export(_Binary(function), given))
            torch.testing.assert_close(engine(*given), expected, rtol=2e-2, atol=1e-2)
