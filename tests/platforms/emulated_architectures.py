# SPDX-License-Identifier: Apache-2.0
"""The architectures of tests/models, in reduced width and depth, for packages of other platforms."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from emulated import ROOT, Package
from models.breadth import NAMES, build
from models.outcomes import exported, without_caches
from safetensors.torch import save_file
from torch.utils import _pytree as pytree

INGOT = ROOT / ".venv/bin/ingot"
# One of each kind: an encoder, a decoding step, an encoder with a decoder, vision, a graph, a model of states.
SLICE = ("bert", "llama_step", "t5", "vit", "graph_attention", "conditional_random_field")
ALL = [name if name in SLICE else pytest.param(name, marks=pytest.mark.long) for name in NAMES]


def distance_of_architecture(package: Package, name: str, folder: Path) -> float:
    """The largest difference between an output of the package and of the program here, relative to the largest element.

    Models that torch runs in part are skipped: they are not a single engine. Those of SLICE are."""
    program = _program(name)
    try:
        engines = {
            target: ingot.build(program, target=target)
            for target in (package.platform.target, "linux-x86-64")
        }
    except ingot.UnsupportedError:
        if name in SLICE:
            raise
        pytest.skip("torch runs parts of it")
    inputs = folder / "inputs.safetensors"
    _write_inputs(program, engines["linux-x86-64"], inputs)
    outputs = []
    for number, (target, engine) in enumerate(engines.items()):
        path, result = folder / f"{number}.ingot", folder / f"{number}.npz"
        engine.save(path)
        if target == "linux-x86-64":
            subprocess.run([INGOT, "run", path, "-i", inputs, "-o", result], check=True, capture_output=True)
        else:
            package.ingot("run", path, "-i", inputs, "-o", result)
        outputs.append(dict(np.load(result)))
    assert list(outputs[0]) == list(outputs[1])
    return max(_distance(*pair) for pair in zip(outputs[0].values(), outputs[1].values(), strict=True))


def _program(name: str) -> torch.export.ExportedProgram:
    case = without_caches(build(name))
    with torch.no_grad():
        try:
            return exported(case.model, case)
        except Exception:
            if name in SLICE:
                raise
            pytest.skip("torch cannot export it")


def _write_inputs(program: torch.export.ExportedProgram, engine: ingot.Engine, path: Path) -> None:
    values = [leaf for leaf in pytree.tree_leaves(program.example_inputs) if isinstance(leaf, torch.Tensor)]
    assert [tuple(value.shape) for value in values] == [port.shape for port in engine.inputs]
    # Copies: tensors that share memory cannot be saved.
    save_file(
        {
            port.name: copy.deepcopy(value).contiguous()
            for port, value in zip(engine.inputs, values, strict=True)
        },
        path,
    )


def _distance(actual: np.ndarray, expected: np.ndarray) -> float:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.dtype.kind != "f" or expected.size == 0:
        return 0.0 if (actual == expected).all() else float("inf")
    assert (np.isfinite(actual) == np.isfinite(expected)).all()
    finite = np.isfinite(expected)
    if not finite.any():
        return 0.0
    return float(np.abs(actual[finite] - expected[finite]).max() / max(np.abs(expected[finite]).max(), 1e-30))
