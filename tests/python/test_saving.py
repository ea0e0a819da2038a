# SPDX-License-Identifier: Apache-2.0
"""Engines and compiled modules on disk, opened in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from small_models import SingularValues, mlp

PACKAGE = Path(ingot.__file__).parents[1]


def run_python(code: str, *arguments: object) -> str:
    """What a fresh interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          check=False, env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


LOAD_PROGRAM = """
import sys, torch, ingot
module, direct = ingot.load(sys.argv[1]), torch.export.load(sys.argv[1]).module()
for rows in (2, 5):
    x = torch.arange(rows * int(sys.argv[3])).reshape(rows, -1) / 10.0
    torch.testing.assert_close(module(x), direct(x))
    torch.save(module(x), f"{sys.argv[2]}/{rows}.pt")
"""


@pytest.mark.parametrize(
    ("model", "width"), [(mlp(), 8), (SingularValues(counts=False), 4)], ids=["whole", "hybrid"]
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
    with pytest.raises(ingot.UserError, match="exported_program, engine"):
        ingot.save(ingot.compile(mlp(), inputs=[torch.randn(3, 8)]), tmp_path / "x", output_format="onnx")
