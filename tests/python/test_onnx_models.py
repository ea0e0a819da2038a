# SPDX-License-Identifier: Apache-2.0
"""Models that torch exports to ONNX with dynamic sizes, against eager by the accuracy rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from models import build

Args = tuple[torch.Tensor, ...]


@pytest.fixture(autouse=True)
def _forgotten_kernels() -> Iterator[None]:
    """torch.onnx.export gives recurrent layers another kernel for its time, but torch goes on with the one that it called before:
    one export or build of a model decides how others are traced."""
    operators = (torch.ops.aten.lstm.input, torch.ops.aten.gru.input)
    for operator in operators:
        operator._dispatch_cache.clear()
    yield
    for operator in operators:
        operator._dispatch_cache.clear()


def _tokens(words: int) -> Callable[[int, int], Args]:
    return lambda batch, length: (torch.randint(0, words, (batch, length)),)


def _masked(batch: int, length: int) -> Args:
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, length // 2 :] = 0
    return torch.randint(0, 30522, (batch, length)), mask


def _image(batch: int, blocks: int) -> Args:
    return (torch.randn(batch, 3, 32 * blocks, 64),)


# name -> arguments of a batch and a second size, and the axes of all arguments that change
MODELS = {
    "lstm_tagger": (_tokens(5000), (0, 1)),
    "minilm": (_masked, (0, 1)),
    "mobilenet_v2": (_image, (0, 2)),
}


LONG = ("minilm", "mobilenet_v2")  # an export takes up to minutes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in MODELS]
)
def test_exported_model_is_as_accurate_as_eager(name: str, tmp_path: Path):
    torch.manual_seed(0)
    make, axes = MODELS[name]
    model = build(name).model
    example = make(2, 3)
    shapes = tuple(dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for _ in example)
    torch.onnx.export(
        model, example, tmp_path / "model.onnx", dynamo=True, dynamic_shapes=shapes, verbose=False
    )
    engine = ingot.build(tmp_path / "model.onnx")
    for sizes in ((1, 2), (3, 4)):
        args = make(*sizes)
        with torch.no_grad():
            assert_accurate(engine(*args), model(*args), golden(model, args))
