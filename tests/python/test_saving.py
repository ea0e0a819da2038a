# SPDX-License-Identifier: Apache-2.0
"""Engines and compiled modules on disk, opened in fresh processes."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from lacking import negated
from small_models import InParts, mlp
from torch import nn

PACKAGE = Path(ingot.__file__).parents[1]


def run_python(code: str, *arguments: object) -> str:
    """The output of a fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{Path(__file__).parent}"}
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          check=False, env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


LOAD_PROGRAM = """
import sys, torch, ingot, lacking
module, direct = ingot.load(sys.argv[1]), torch.export.load(sys.argv[1]).module()
for rows in (2, 5):
    x = torch.arange(rows * int(sys.argv[3])).reshape(rows, -1) / 10.0
    torch.testing.assert_close(module(x), direct(x))
    torch.save(module(x), f"{sys.argv[2]}/{rows}.pt")
"""


@pytest.mark.parametrize(
    ("model", "width"), [(mlp(), 8), (InParts(counts=False), 4)], ids=["whole", "hybrid"]
)
@torch.no_grad()
def test_exported_program(tmp_path: Path, model: torch.nn.Module, width: int) -> None:
    rows = ingot.Input(min_shape=(2, width), opt_shape=(4, width), max_shape=(9, width))
    module = ingot.compile(model, inputs=[rows])
    ingot.save(module, tmp_path / "model.pt2", output_format="exported_program")
    run_python(LOAD_PROGRAM, tmp_path / "model.pt2", tmp_path, width)
    for count in (2, 5):
        x = torch.arange(count * width).reshape(count, -1) / 10.0
        torch.testing.assert_close(torch.load(tmp_path / f"{count}.pt"), module(x), rtol=1e-4, atol=1e-4)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np, ingot
engine = ingot.Engine.load(sys.argv[1])
x = np.load(sys.argv[2])
np.save(sys.argv[3], engine(x))
try:
    engine(x.astype(np.float64))
except ingot.UserError as error:
    print(error.code)
"""


def test_engine_file_without_torch(tmp_path: Path) -> None:
    model, x = mlp(), torch.randn(3, 8)
    ingot.save(ingot.compile(model, inputs=[x]), tmp_path / "model.ingot", output_format="engine")
    np.save(tmp_path / "x.npy", x.numpy())
    printed = run_python(WITHOUT_TORCH, tmp_path / "model.ingot", tmp_path / "x.npy", tmp_path / "y.npy")
    assert printed.startswith("INGOT-U30")
    with torch.no_grad():
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model(x).numpy(), rtol=1e-4, atol=1e-5)


def test_engine_save_and_load(tmp_path: Path) -> None:
    model, x = mlp(), torch.randn(3, 8)
    engine = ingot.compile(model, inputs=[x]).engine
    engine.save(tmp_path / "model.ingot")
    loaded = ingot.Engine.load(tmp_path / "model.ingot", verify="full")
    assert torch.equal(loaded(x), engine(x))
    assert sorted(loaded.weights) == sorted(model.state_dict())
    assert loaded.inputs == engine.inputs
    assert isinstance(ingot.load(tmp_path / "model.ingot"), ingot.Engine)


def test_damaged_engine(tmp_path: Path) -> None:
    path = tmp_path / "model.ingot"
    ingot.compile(mlp(), inputs=[torch.randn(3, 8)]).engine.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ingot.UserError):
        ingot.Engine.load(path, verify="full")


def test_bad_format(tmp_path: Path) -> None:
    with pytest.raises(ingot.UserError, match="exported_program, torchscript, engine"):
        ingot.save(ingot.compile(mlp(), inputs=[torch.randn(3, 8)]), tmp_path / "x", output_format="onnx")


def keyword_only() -> nn.Module:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, *, x: torch.Tensor, pair: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.linear(x) * pair["scale"] - pair["shift"]

    return Scaled().eval()


class Solved(nn.Module):
    """torch runs its middle, with a weight and a constant of its own; engines run both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)
        self.matrix = nn.Parameter(torch.eye(4) * 3 + 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        if x.shape[0] % 2:
            x = x + 1
        solved = negated(self.matrix) @ self.first(x).mT
        return {"y": self.second(negated(self.matrix * torch.tensor(0.1)) + solved @ solved.mT)}


ROWS = {width: ingot.Input(min_shape=(2, width), max_shape=(9, width)) for width in (4, 8)}
PAIR = {"scale": torch.randn(4), "shift": torch.randn(4)}
SAVED = {
    "whole": (mlp, (ROWS[8],), {}, (torch.randn(5, 8),), {}),
    "keywords": (keyword_only, (), {"x": ROWS[8], "pair": PAIR}, (), {"x": torch.randn(5, 8), "pair": PAIR}),
    "hybrid": (lambda: InParts(counts=False), (ROWS[4],), {}, (torch.randn(5, 4),), {}),
    "engines between torch": (Solved, (torch.randn(4, 4),), {}, (torch.randn(4, 4),), {}),
}

IN_PARTS = ("hybrid", "engines between torch")


@pytest.fixture(params=SAVED)
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple:
    """A model, its compiled module, that module reloaded, and arguments for both."""
    make, inputs, kwarg_inputs, args, kwargs = SAVED[request.param]
    model = make()
    module = ingot.compile(model, inputs=inputs, kwarg_inputs=kwarg_inputs)
    assert bool(ingot.report(module).fallbacks) == (request.param in IN_PARTS)
    ingot.save(module, tmp_path / "model.of_any_name")
    return model, module, ingot.load(tmp_path / "model.of_any_name"), args, kwargs


@torch.no_grad()
def test_a_loaded_module_is_a_compiled_module(saved: tuple) -> None:
    _, module, loaded, args, kwargs = saved
    torch.testing.assert_close(loaded(*args, **kwargs), module(*args, **kwargs), rtol=0, atol=0)
    assert str(ingot.report(loaded)) == str(ingot.report(module))
    keys = [[engine.inspect()["key_sha256"] for engine in each.engines] for each in (loaded, module)]
    assert keys[0] == keys[1]
    assert all(engine.memory()["weights"] >= 0 for engine in loaded.engines)
    if module.compiled.graph is None:
        assert loaded.engine.inputs == module.engine.inputs
    else:
        with pytest.raises(ingot.UnsupportedError, match="not a single engine"):
            _ = loaded.engine


@torch.no_grad()
def test_refits_after_loading_and_saving_again(saved: tuple, tmp_path: Path) -> None:
    model, module, loaded, args, kwargs = saved
    new = {name: value * 0.5 for name, value in model.state_dict().items() if name != "calls"}
    before, twin = loaded(*args, **kwargs), copy.deepcopy(loaded)
    module.refit(new, partial=True)
    loaded.refit(new, partial=True)
    want = module(*args, **kwargs)
    ingot.save(loaded, tmp_path / "again.pt2")
    for each in (loaded, ingot.load(tmp_path / "again.pt2")):
        torch.testing.assert_close(each(*args, **kwargs), want, rtol=0, atol=0)
    torch.testing.assert_close(twin(*args, **kwargs), before, rtol=0, atol=0)
    with pytest.raises(ingot.UserError, match="no weight"):
        loaded.refit({"none": torch.zeros(1)})


def test_a_loaded_module_refuses_as_the_compiled_one(saved: tuple) -> None:
    _, module, loaded, args, kwargs = saved
    tensors = kwargs["x"] if kwargs else args[0]
    for bad in (
        tensors.double(),
        tensors[:, :-1],
        tensors.expand(3, *tensors.shape),
        torch.cat([tensors] * 20),
    ):
        refusals = []
        for each in (module, loaded):
            with pytest.raises(ingot.UserError) as error:
                each(*(bad for _ in args), **{**kwargs, "x": bad} if kwargs else {})
            refusals.append(str(error.value))
        assert len(set(refusals)) == 1


def test_state_dict_has_the_models_names_and_follows_refits(saved: tuple) -> None:
    model, module, loaded, _, _ = saved
    torch.testing.assert_close(module.state_dict(), model.state_dict())
    new = {name: value * 0.5 for name, value in model.state_dict().items() if name != "calls"}
    module.refit(new, partial=True)
    torch.testing.assert_close(nn.ModuleDict({"inner": module}).state_dict(), {
        f"inner.{name}": value for name, value in (model.state_dict() | new).items()})  # fmt: skip
    with pytest.raises(ingot.UnsupportedError, match="without a state_dict"):
        loaded.state_dict()


def test_a_file_holds_the_state_dict_on_request(saved: tuple, tmp_path: Path) -> None:
    model, module, _, args, kwargs = saved
    ingot.save(module, tmp_path / "model.pt2", state_dict=True)
    loaded = ingot.load(tmp_path / "model.pt2")
    torch.testing.assert_close(dict(loaded.state_dict()), dict(model.state_dict()))
    model.load_state_dict(loaded.state_dict())
    torch.testing.assert_close(loaded(*args, **kwargs), module(*args, **kwargs), rtol=0, atol=0)
    new = {name: value * 0.5 for name, value in model.state_dict().items() if name != "calls"}
    loaded.refit(new, partial=True)
    torch.testing.assert_close(dict(loaded.state_dict()), dict(model.state_dict()) | new)
    ingot.save(loaded, tmp_path / "again.pt2", state_dict=True)
    again = ingot.load(tmp_path / "again.pt2")
    torch.testing.assert_close(dict(again.state_dict()), dict(loaded.state_dict()))
    with pytest.raises(ingot.UserError, match="holds no state_dict"):
        ingot.save(module, tmp_path / "model.ingot", output_format="engine", state_dict=True)


def test_tied_weights_are_held_once(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(512, 512, bias=False), nn.ReLU(), nn.Linear(512, 512, bias=False)).eval()
    model[2].weight = model[0].weight
    module = ingot.compile(model, inputs=[torch.randn(2, 512)])
    for choice in (False, True):
        ingot.save(module, tmp_path / f"{choice}.pt2", state_dict=choice)
    sizes = [(tmp_path / f"{choice}.pt2").stat().st_size for choice in (False, True)]
    assert 0.9 < (sizes[1] - sizes[0]) / (512 * 512 * 4) < 1.1
    loaded = ingot.load(tmp_path / "True.pt2")
    torch.testing.assert_close(dict(loaded.state_dict()), dict(model.state_dict()))


def test_tied_weights_follow_refits_by_any_name() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU(), nn.Linear(4, 4, bias=False)).eval()
    model[2].weight = model[0].weight
    module = ingot.compile(model, inputs=[torch.randn(2, 4)])
    (name,) = module.engine.weights
    module.refit({name: torch.ones(4, 4)})
    torch.testing.assert_close(module.state_dict(), {key: torch.ones(4, 4) for key in model.state_dict()})


QUIET = """
import sys, torch, ingot
from lacking import negated
class Products(torch.nn.Module):
    def forward(self, x): return negated(x) * 2
for number, model in enumerate((torch.nn.Linear(4, 4), Products())):
    path = f"{sys.argv[1]}/{number}.bin"
    compiled = ingot.compile(model.eval(), inputs=[torch.randn(4, 4)])
    assert len(ingot.report(compiled).fallbacks) == number
    ingot.save(compiled, path)
    ingot.load(path)(torch.randn(4, 4))
"""


def test_saving_and_loading_print_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "always", "-c", QUIET, str(tmp_path)], capture_output=True, text=True,
                          check=True, env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{Path(__file__).parent}"})  # fmt: skip
    assert done.stdout + done.stderr == ""
