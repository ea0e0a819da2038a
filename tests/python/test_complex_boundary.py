# SPDX-License-Identifier: Apache-2.0
"""Complex inputs and results of programs: engines have complex ports, whose memory are pairs of reals."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from whole_functions import in_engine


def _at_the_boundary(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    turned = z * torch.polar(x.abs(), x)
    return turned, turned.abs() + x, turned * 2j, turned.mT, z, turned.sum(), turned.real


class _Boundary(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return _at_the_boundary(z, x)


_GIVEN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda z: z,
    "conjugated": lambda z: z.conj(),
    "negated": lambda z: torch._neg_view(z),
    "both": lambda z: torch._neg_view(z.conj()),
    "transposed": lambda z: z.mT.contiguous().mT,
    "strided": lambda z: torch.stack([z, -z], -1)[..., 1],
    "expanded": lambda z: z[:1].expand(z.shape),
}
_SHAPES = {"matrix": (3, 4), "empty": (0, 4), "one": (1, 1)}


def _made(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.randn(shape, dtype=dtype)
    return z, torch.randn(shape, dtype=z.real.dtype)


def _compiled(args: tuple[torch.Tensor, ...], tmp_path: Path) -> Callable[..., Any]:
    torch._dynamo.reset()
    options = {"require_full_compilation": True, "check_speed": False}
    return torch.compile(_at_the_boundary, backend="ingot", fullgraph=True, options=options)


def _ahead_of_time(args: tuple[torch.Tensor, ...], tmp_path: Path) -> ingot.CompiledModule:
    return ingot.compile(_Boundary().eval(), inputs=args, require_full_compilation=True)


def _saved(args: tuple[torch.Tensor, ...], tmp_path: Path) -> Callable[..., Any]:
    ingot.save(_ahead_of_time(args, tmp_path), str(tmp_path / "boundary.ingot"))
    return ingot.load(str(tmp_path / "boundary.ingot"))


def _engine(args: tuple[torch.Tensor, ...], tmp_path: Path) -> ingot.Engine:
    engine = _ahead_of_time(args, tmp_path).engine
    assert [port.dtype for port in engine.inputs] == [
        {32: "c64", 64: "c128"}[args[1].itemsize * 8],
        engine.inputs[1].dtype,
    ]
    engine.save(tmp_path / "boundary.engine")
    return ingot.Engine.load(tmp_path / "boundary.engine", verify="full")


_WAYS = {"compile": _compiled, "aot": _ahead_of_time, "saved": _saved, "engine": _engine}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=["c64", "c128"])
@pytest.mark.parametrize("shape", sorted(_SHAPES))
@pytest.mark.parametrize("way", sorted(_WAYS))
def test_all_ways(way: str, shape: str, dtype: torch.dtype, tmp_path: Path) -> None:
    args = _made(_SHAPES[shape], dtype)
    with torch.no_grad():
        call = _WAYS[way](args, tmp_path)
        for name, given in _GIVEN.items():
            if way == "compile" and name in ("negated", "both"):
                continue  # torch traces what it is
            z = given(args[0])
            for ours, eager in zip(call(z, args[1]), _at_the_boundary(z, args[1]), strict=True):
                torch.testing.assert_close(ours, eager, msg=lambda text, name=name: f"{name}: {text}")


class _Scalars(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return z * 2j, z / (1 + x * 1j), z.conj(), torch.complex(x, z.imag), z == 2j


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=["c64", "c128"])
@pytest.mark.parametrize("shape", [(), (0,)])
@pytest.mark.parametrize("way", ["compile", "engine"])
def test_without_dims_or_elements(way: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    model, args = _Scalars().eval(), _made(shape, dtype)
    with torch.no_grad():
        if way == "compile":
            results = in_engine(model, list(args))
        else:
            results = ingot.compile(model, inputs=args, require_full_compilation=True).engine(*args)
        for ours, eager in zip(results, model(*args), strict=True):
            torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("given", sorted(_GIVEN))
@pytest.mark.parametrize("dynamic", [False, True])
def test_complex_inputs_and_outputs(given: str, dynamic: bool) -> None:
    z, x = _GIVEN[given](torch.randn(3, 4, dtype=torch.complex64)), torch.randn(3, 4)
    with torch.no_grad():
        actual = in_engine(_at_the_boundary, [z, x], dynamic)
    for ours, eager in zip(actual, _at_the_boundary(z, x), strict=True):
        torch.testing.assert_close(ours, eager)


def test_lazily_negated_reals() -> None:
    x = torch.complex(torch.randn(3, 4), torch.randn(3, 4)).conj().imag
    assert x.is_neg()
    engine = ingot.compile(torch.nn.ReLU(), inputs=[x.clone()]).engine
    torch.testing.assert_close(engine(x), torch.relu(x))


def test_complex_inputs_that_are_changed() -> None:
    def function(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        z.mul_(2).add_(x)
        return z.abs()

    for way in ("dense", "conjugated", "strided"):
        z, x = _GIVEN[way](torch.randn(3, 4, dtype=torch.complex64)), torch.randn(3, 4)
        ours, eager = copy.deepcopy(z), copy.deepcopy(z)
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(function, backend="ingot")(ours, x), function(eager, x))
        torch.testing.assert_close(ours, eager)


class _Turning(torch.nn.Module):
    """A complex state of the model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turn", torch.tensor([1 + 0j, 1j], dtype=torch.complex64))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        self.turn.mul_(1j)
        return z * self.turn


def test_complex_states(tmp_path: Path) -> None:
    model, z = _Turning(), torch.randn(3, 2, dtype=torch.complex64)
    engine = ingot.compile(copy.deepcopy(model), inputs=[z], require_full_compilation=True).engine
    engine.save(tmp_path / "turning.engine")
    loaded = ingot.Engine.load(tmp_path / "turning.engine")
    with torch.no_grad():
        for _ in range(3):
            expected = model(z)
            torch.testing.assert_close(engine(z), expected)
            torch.testing.assert_close(loaded(z), expected)


def test_dynamic_sizes_numpy_and_copies(tmp_path: Path) -> None:
    model, rows = _Boundary().eval(), torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(
        model, _made((3, 4), torch.complex64), dynamic_shapes=({0: rows}, {0: rows})
    )
    compiled = ingot.dynamo.compile(program, require_full_compilation=True)
    assert not ingot.report(compiled).fallbacks
    engine = compiled.engine
    assert engine.inputs[0].shape[1:] == (4,)
    z, x = _made((7, 4), torch.complex64)
    expected = model(z, x)
    for twin in (engine, copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))):
        for ours, eager in zip(twin(z.numpy(), x.numpy()), expected, strict=True):
            assert isinstance(ours, np.ndarray)
            np.testing.assert_allclose(ours, eager.numpy(), rtol=1e-4, atol=1e-5)


def test_errors_speak_of_complex_numbers() -> None:
    args = _made((3, 4), torch.complex64)
    engine = ingot.compile(_Boundary().eval(), inputs=args).engine
    for wrong, text in (
        (args[0].real, r"input 'z' is f32, but the model takes c64\[3,4\]"),
        (args[0].to(torch.complex128), r"input 'z' is c128, but the model takes c64\[3,4\]"),
        (args[0][0], r"input 'z' has 1 dim, but the model takes c64\[3,4\]"),
        (args[0][:2], r"dim 0 of input 'z' \(c64\[3,4\]\) is 2, but the model expects 3"),
    ):
        with pytest.raises(ingot.UserError, match=text):
            engine(wrong, args[1])


def test_inputs_by_their_sizes() -> None:
    spec = ingot.Input(min_shape=(2, 4), opt_shape=(3, 4), max_shape=(8, 4), dtype=torch.complex64)
    real = ingot.Input(min_shape=(2, 4), opt_shape=(3, 4), max_shape=(8, 4))
    model = _Boundary().eval()
    compiled = ingot.compile(model, inputs=[spec, real], require_full_compilation=True)
    args = _made((6, 4), torch.complex64)
    for ours, eager in zip(compiled(*args), model(*args), strict=True):
        torch.testing.assert_close(ours, eager)


def test_torch_runs_complex_operators_at_the_boundary() -> None:
    def function(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (z * x).asin(), z.asin() * z, (z * z).abs()

    torch._dynamo.reset()
    z, x = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4)
    compiled = torch.compile(function, backend="ingot", options={"torch_executed_ops": ["aten.asin.default"]})
    for actual, eager in zip(compiled(z, x), function(z, x), strict=True):
        torch.testing.assert_close(actual, eager)
    assert ingot.report(compiled).fallbacks


def test_parts_with_complex_numbers_between(tmp_path: Path) -> None:
    class Parts(torch.nn.Module):
        def forward(self, z: torch.Tensor) -> torch.Tensor:
            return (torch.asin(z * 2j).conj() * z).exp()

    model, z = Parts().eval(), torch.randn(3, 4, dtype=torch.complex64)
    compiled = ingot.compile(model, inputs=[z], torch_executed_ops=["aten.asin.default"])
    ingot.save(compiled, str(tmp_path / "parts.pt2"))
    for module in (compiled, ingot.load(str(tmp_path / "parts.pt2"))):
        torch.testing.assert_close(module(z), model(z))
    with pytest.raises(ingot.UnsupportedError, match="not a single engine"):
        _ = compiled.engine
