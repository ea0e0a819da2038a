# SPDX-License-Identifier: Apache-2.0
"""`ingot.quantize` to int4 and fp8, of weights alone and with activations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from torch import nn

# What quantizes, and the largest error of the results as a part of their norm.
FORMS: dict[str, tuple[dict[str, Any], float]] = {
    "int4": ({"weights": "int4"}, 0.13),
    "int4 of 64": ({"weights": "int4", "group_size": 64}, 0.15),
    "int4 with zero points": ({"weights": "int4", "group_size": 128, "symmetric": False}, 0.13),
    "float8": ({"weights": "float8"}, 0.05),
    "int8": ({"activations": "none"}, 0.01),
    "int8 of tensors": ({"weights": "per_tensor", "activations": "none"}, 0.02),
}


DTYPES = (torch.float32, torch.bfloat16)
# Each form once; both dtypes with one of each kind.
CASES = [(form, dtype) for form in FORMS for dtype in DTYPES]
if os.environ.get("INGOT_LONG") != "1":
    CASES = [(form, DTYPES[i % 2]) for i, form in enumerate(FORMS)]


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def mlp(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Linear(256, 384), nn.GELU(), nn.Linear(384, 32), nn.Tanh(), nn.Linear(32, 24))
    return nn.Sequential(*layers).eval().to(dtype)


def batches(count: int = 4) -> list[torch.Tensor]:
    return [torch.randn(6, 256, generator=torch.Generator().manual_seed(i)) for i in range(count)]


def error(result: torch.Tensor, exact: torch.Tensor) -> float:
    return ((result.double() - exact.double()).norm() / exact.double().norm()).item()


@pytest.mark.parametrize(("form", "dtype"), CASES, ids=str)
def test_weights_alone(form: str, dtype: torch.dtype) -> None:
    options, allowed = FORMS[form]
    model, x = mlp(dtype), batches()[0].to(dtype)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    program = ingot.quantize(model, inputs=[x], **options)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert program(x).dtype is dtype
    exact, quantized = mlp()(x.float()), program(x)
    assert 0 < error(quantized, exact) < allowed
    compiled = ingot.compile(program, inputs=[x], require_full_compilation=True)
    assert error(compiled(x), quantized) < (1e-5 if dtype is torch.float32 else 1e-2)


def test_fp8_of_weights_and_activations(tmp_path: Path) -> None:
    model, x, path = mlp(), batches()[0], tmp_path / "ranges.json"
    how: dict[str, Any] = {"weights": "float8", "activations": "float8", "cache": path}
    program = ingot.quantize(model, batches(), **how)
    assert 0 < error(program(x), model(x)) < 0.06
    compiled = ingot.compile(program, inputs=[x], require_full_compilation=True)
    assert error(compiled(x), program(x)) < 1e-3, "a sum in another order may round an activation otherwise"
    again = ingot.quantize(model, [], [x], **how)
    assert torch.equal(again(x), program(x))
    refused(lambda: ingot.quantize(model, batches(), cache=path), "other options")
    beyond = program(x * 100)
    assert beyond.isfinite().all(), "numbers beyond the range become the largest"


def test_depths_that_groups_do_not_divide_stay() -> None:
    program = ingot.quantize(mlp(), inputs=batches()[:1], weights="int4", group_size=64)
    stored = {name: tensor for name, tensor in program.state_dict().items() if name.endswith("_i4")}
    assert [tuple(tensor.shape) for tensor in stored.values()] == [(384, 256), (32, 384)]
    kept = ingot.quantize(mlp(), inputs=batches()[:1], weights="int4", keep_precision="linear_1")
    assert sum(name.endswith("_i4") for name in kept.state_dict()) == 2


def test_files_and_torch_compile(tmp_path: Path) -> None:
    program, x = ingot.quantize(mlp(), inputs=batches()[:1], weights="int4"), batches()[0]
    torch._dynamo.reset()
    assert error(torch.compile(program, backend="ingot")(x), program(x)) < 1e-5
    torch.export.save(torch.export.export(program, (x,)), tmp_path / "mlp.pt2")
    engine = ingot.build(tmp_path / "mlp.pt2")
    assert error(torch.from_numpy(engine(x.numpy())), program(x)) < 1e-5


def refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ingot.UserError, match=message) as caught:
        call()
    assert caught.value.code == "INGOT-U025"


@pytest.mark.parametrize(
    ("ignored", "beside"),
    [
        *(({name: value}, {"weights": weights}) for name, value in (("group_size", 32), ("symmetric", True))
          for weights in ("per_channel", "per_tensor", "float8")),
        *(({name: value}, {"weights": weights, "activations": "none"})
          for name, value in (("method", "mse"), ("calibration_data", batches()), ("progress", print))
          for weights in ("per_channel", "int4", "float8")),
    ],
    ids=lambda options: "-".join(map(str, options)),
)  # fmt: skip
def test_options_that_would_change_nothing(ignored: dict[str, Any], beside: dict[str, Any]) -> None:
    data = {} if beside.get("activations") == "none" else {"calibration_data": batches()}
    refused(
        lambda: ingot.quantize(mlp(), inputs=batches()[:1], **{**data, **ignored, **beside}),
        next(iter(ignored)),
    )


def test_bad_requests() -> None:
    model, inputs = mlp(), batches()[:1]
    refused(lambda: ingot.quantize(model, inputs=inputs, weights="int3"), 'not "int3"')
    refused(
        lambda: ingot.quantize(model, inputs=inputs, weights="int4", group_size=48), "32, 64, 128, not 48"
    )
    refused(lambda: ingot.quantize(model, inputs=inputs, weights="int4", activations="u8"), 'none, not "u8"')
    refused(lambda: ingot.quantize(model, inputs=inputs), "no calibration data")
    refused(
        lambda: ingot.quantize(model, inputs=inputs, weights="int4", cache="ranges.json"), "for activations"
    )
    refused(
        lambda: ingot.quantize(model, inputs=inputs, weights="float8", smoothing_share=0.5), "for activations"
    )
    fp8 = {"weights": "float8", "activations": "float8"}
    refused(lambda: ingot.quantize(model, inputs, method="mse", **fp8), 'percentile, not "mse"')
    refused(lambda: ingot.quantize(mlp(torch.bfloat16), inputs, **fp8), "layers of f32")
    refused(lambda: ingot.quantize(model, weights="int4"), "there are no inputs")
    convolution = nn.Sequential(nn.Conv2d(3, 4, 3)).eval()
    image = [torch.randn(1, 3, 8, 8)]
    refused(lambda: ingot.quantize(convolution, inputs=image, weights="int4"), "no linear layer")
