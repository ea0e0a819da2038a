# SPDX-License-Identifier: Apache-2.0
"""Checks of an installed wheel: try_wheel.py MODEL.pt2. Needs numpy; uses torch if it is there."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import ingot
import numpy as np

PROGRAM = Path(sys.executable).with_name("ingot")


def try_program(model: str) -> None:
    """Builds, checks and runs an engine without Python."""
    for words in (
        ["build", model, "-o", "model.ingot"],
        ["verify", "model.ingot"],
        ["run", "model.ingot", "-o", "out.npz"],
    ):
        subprocess.run([PROGRAM, *words], check=True, capture_output=True)


def try_engine(model: str) -> None:
    """An engine of this process and one from a file agree, bit by bit."""
    built, loaded = ingot.build(model), ingot.Engine.load("model.ingot")
    port = loaded.inputs[0]
    shape = [size if isinstance(size, int) else 3 for size in port.shape]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    arguments = [x] * len(loaded.inputs)
    for a, b in zip(flat(built(*arguments)), flat(loaded(*arguments)), strict=True):
        assert np.array_equal(a, b)
        assert np.isfinite(a).all()


def flat(result: object) -> list[np.ndarray]:
    if isinstance(result, dict):
        result = list(result.values())
    return (
        [each for part in result for each in flat(part)]
        if isinstance(result, (list, tuple))
        else [np.asarray(result)]
    )


def try_torch() -> None:
    """Both front ends against eager."""
    import torch

    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU()).eval(), torch.randn(4, 8)
    with torch.no_grad():
        expected = model(x)
        torch.testing.assert_close(torch.compile(model, backend="ingot")(x), expected)
        torch.testing.assert_close(ingot.compile(model, inputs=[x])(x), expected)


has_torch = importlib.util.find_spec("torch") is not None
try_program(sys.argv[1])
try_engine(sys.argv[1])
if has_torch:
    try_torch()
assert ("torch" in sys.modules) == has_torch
version = ".".join(map(str, sys.version_info[:2]))
print(
    f"Python {version}, numpy {np.__version__}, {'torch' if has_torch else 'no torch'}: ingot {ingot.__version__} works"
)
