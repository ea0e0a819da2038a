# SPDX-License-Identifier: Apache-2.0
"""`ingot bisect`: what `ingot.bisect` finds, from the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT
from torch import nn

RIGHT, WRONG = 0, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.pt2, whose folded batch norm rounds differently, x.npy and exact.npz, its result in f64."""
    folder = tmp_path_factory.mktemp("bisect")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    model[1].running_mean.uniform_(-1, 1)
    model[1].running_var.uniform_(0.5, 2)
    x = torch.randn(1, 3, 12, 12)
    torch.export.save(torch.export.export(model, (x,)), folder / "model.pt2")
    np.save(folder / "x.npy", x.numpy())
    np.savez(folder / "exact.npz", model.double()(x.double()).detach().numpy())
    np.save(folder / "other_shape.npy", np.zeros((2, 2), np.float32))
    return folder


def bisect(folder: Path, *options: Any) -> subprocess.CompletedProcess:
    command = [INGOT, "bisect", folder / "model.pt2", "-i", folder / "x.npy", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def found(folder: Path, *options: Any) -> dict:
    done = bisect(folder, "--json", *options)
    report = json.loads(done.stdout)
    assert done.returncode == (RIGHT if report["outcome"] == "right" else WRONG), done.stderr
    return report


def test_nothing_is_wrong(folder: Path) -> None:
    assert found(folder) == {"outcome": "right", "builds": 2}
    done = bisect(folder)
    assert done.returncode == RIGHT
    assert done.stdout == "the result of all passes is within the tolerance (2 builds)\n"
    assert found(folder, "--reference", folder / "exact.npz")["outcome"] == "right"
    assert found(folder, "--reference", folder / "model.pt2")["outcome"] == "right"


def test_it_finds_what_python_finds(folder: Path) -> None:
    x = torch.from_numpy(np.load(folder / "x.npy"))
    expected = ingot.bisect(folder / "model.pt2", [x], rtol=0, atol=0)
    report = found(folder, "--atol", "0")
    assert report["bisect_passes"] == expected.limit
    assert report["disable_passes"] == expected.disable
    assert report["builds"] == expected.builds
    assert report["is_right_without"] == expected.is_only_one
    done = bisect(folder, "--atol", "0")
    assert done.returncode == WRONG
    assert f"the pass {expected.pass_name}" in done.stdout
    assert f"--disable-passes {expected.disable}" in done.stdout


def test_options_of_builds_hold(folder: Path) -> None:
    """Turning off what is found leads to the bits without passes; so does a limit below it."""
    disabled: list[str] = []
    while (report := found(folder, "--atol", "0", "--disable-passes", ",".join(disabled)))[
        "outcome"
    ] != "right":
        assert report["disable_passes"] not in disabled
        disabled.append(report["disable_passes"])
    assert disabled
    assert found(folder, "--atol", "0", "--bisect-passes", "0")["outcome"] == "right"
    assert found(folder, "--atol", "0", "--optimization-level", "0")["outcome"] == "right"


def test_wrong_without_any_pass(folder: Path) -> None:
    reference = dict(np.load(folder / "exact.npz"))
    np.savez(folder / "wrong.npz", **{name: array + 1 for name, array in reference.items()})
    assert found(folder, "--reference", folder / "wrong.npz") == {
        "outcome": "wrong_before_passes",
        "builds": 1,
    }
    done = bisect(folder, "--reference", folder / "wrong.npz")
    assert done.returncode == WRONG
    assert "before any optional pass" in done.stdout


def test_a_reference_of_another_model(folder: Path) -> None:
    done = bisect(folder, "--reference", folder / "other_shape.npy")
    assert done.returncode == 1
    assert done.stderr.endswith("it is f32[1,8,10,10], the reference f32[2,2]\n")
    assert done.stdout == ""
