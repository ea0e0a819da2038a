# SPDX-License-Identifier: Apache-2.0
"""`ingot compare`: outputs of models, engines and saved arrays, by the accuracy rule or a tolerance of the user."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from errors.inputs import INGOT
from torch import nn

WITHIN, DIFFERS = 0, 3


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.second(torch.relu(self.first(x)).softmax(-1))
        return y, y.argmax(-1)


def compare(*arguments: Any) -> tuple[int, dict]:
    done = subprocess.run([INGOT, "compare", "--json", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode in (WITHIN, DIFFERS), done.stderr
    return done.returncode, json.loads(done.stdout)


def save(model: nn.Module, path: Path, *, sizes: str = "dynamic") -> None:
    rows = [{0: torch.export.Dim("rows", min=2, max=64)}] if sizes == "dynamic" else None
    torch.export.save(torch.export.export(model, (torch.randn(5, 16),), dynamic_shapes=rows), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.pt2 and model.ingot of a model, other.pt2 of one whose second layer has other weights; x.npy and expected.npz."""
    folder = tmp_path_factory.mktemp("compare")
    torch.manual_seed(0)
    model = Layers().eval()
    save(model, folder / "model.pt2")
    subprocess.run([INGOT, "build", folder / "model.pt2"], check=True, capture_output=True)
    x = torch.randn(7, 16)
    np.save(folder / "x.npy", x.numpy())
    y, best = model.double()(x.double())
    np.savez(folder / "expected.npz", y.detach().float().numpy(), best.numpy())
    other = Layers().eval()
    other.first = model.first
    save(other.float(), folder / "other.pt2", sizes="fixed")
    return folder


def test_a_model_and_its_engine(folder: Path) -> None:
    status, found = compare(folder / "model.pt2", folder / "model.ingot")
    assert status == WITHIN
    assert found["is_within"]
    assert [output["dtype"] for output in found["outputs"]] == ["f32", "i64"]
    assert all(output["share"] <= 1 and output["outside"] == 0 for output in found["outputs"])
    assert all(node["error"] < 1e-5 and "forward" in node["source"] for node in found["nodes"])
    assert "linear_1" in {node["node"] for node in found["nodes"]}


def test_saved_arrays_of_eager(folder: Path) -> None:
    status, found = compare(folder / "expected.npz", folder / "model.ingot", "-i", folder / "x.npy")
    assert status == WITHIN
    assert found["outputs"][0]["shape"] == [7, 4]
    assert found["nodes"] == []
    status, _ = compare(folder / "model.ingot", folder / "expected.npz", "-i", folder / "x.npy")
    assert status == WITHIN


def test_other_weights_differ_from_their_layer_on(folder: Path) -> None:
    """The sizes are those of the result, which has fixed ones; the nodes say where it begins."""
    status, found = compare(folder / "model.pt2", folder / "other.pt2")
    assert status == DIFFERS
    output = found["outputs"][0]
    assert output["shape"] == [5, 4]
    assert output["share"] > 1
    assert output["share_at"]["result"] != output["share_at"]["reference"]
    errors = {node["node"]: node["error"] for node in found["nodes"]}
    assert errors["linear_1"] > 1e-2
    assert errors["linear"] < 1e-5
    assert found["nodes"][0]["error"] == max(errors.values())
    text = subprocess.run(
        [INGOT, "compare", folder / "model.pt2", folder / "other.pt2", "--top", "1"],
        capture_output=True,
        text=True,
    )
    assert text.returncode == DIFFERS
    assert "differ by more than the tolerance" in text.stdout
    assert "nodes with smaller errors" in text.stdout


def test_what_the_command_writes_it_reads(folder: Path) -> None:
    subprocess.run([INGOT, "run", folder / "model.ingot", "-o", folder / "out.npz", "--shapes", "x:3x16"], check=True,
                   capture_output=True)  # fmt: skip
    status, found = compare(folder / "out.npz", folder / "model.ingot", "--shapes", "x:3x16")
    assert status == WITHIN
    assert [output["largest"] for output in found["outputs"]] == [0, 0]


def saved(folder: Path, name: str, *arrays: np.ndarray) -> Path:
    np.savez(folder / name, *arrays)
    return folder / name


# reference, result, how many elements are outside of the accuracy rule
RULE = [
    (np.float32([1, 1000]), np.float32([1, 1000.05]), 0),
    (np.float32([1, 1000]), np.float32([1, 1000.2]), 1),
    (np.float32([0, 1000]), np.float32([0.005, 1000]), 0),  # a hundred thousandth of the RMS is 0.007
    (np.float32([0, 1]), np.float32([0.005, 1]), 1),
    (np.float64([1]), np.float64([1 + 1e-8]), 1),
    (np.float64([1]), np.float32([1 + 1e-6]), 0),  # the rule of f32
    (np.float16([1]), np.float16([1.02]), 0),
    (np.float16([1]), np.float16([1.1]), 1),
    (np.float32([np.nan, np.inf, -np.inf]), np.float32([np.nan, np.inf, -np.inf]), 0),
    (np.float32([np.nan, 1, np.inf]), np.float32([1, np.nan, -np.inf]), 3),
    (np.float32([1]), np.float32([np.inf]), 1),
    (np.int64([2**60]), np.int64([2**60 + 1]), 1),
    (np.uint64([2**63]), np.uint64([2**63]), 0),
    (np.array([True, False]), np.array([True, True]), 1),
    (np.float32([]), np.float32([]), 0),
]


@pytest.mark.parametrize(("reference", "result", "outside"), RULE)
def test_the_accuracy_rule(tmp_path: Path, reference: np.ndarray, result: np.ndarray, outside: int) -> None:
    files = saved(tmp_path, "reference.npz", reference), saved(tmp_path, "result.npz", result)
    status, found = compare(*files)
    (output,) = found["outputs"]
    assert output["outside"] == outside
    assert output["elements"] == result.size
    assert status == (DIFFERS if outside else WITHIN)
    assert found["is_within"] == (outside == 0)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--rtol", "0.1"], WITHIN),
        (["--rtol", "0.05"], DIFFERS),
        (["--atol", "0.5"], WITHIN),
        (["--atol", "0.1"], DIFFERS),
        (["--atol", "0.1", "--rtol", "0.08"], WITHIN),
    ],
)
def test_a_tolerance_of_the_user(tmp_path: Path, options: list[str], status: int) -> None:
    files = (
        saved(tmp_path, "reference.npz", np.float32([2, 4])),
        saved(tmp_path, "result.npz", np.float32([2, 4.375])),
    )
    found_status, found = compare(*files, *options)
    assert found_status == status
    (output,) = found["outputs"]
    assert output["largest_at"] == {"at": [1], "result": 4.375, "reference": 4}
    assert output["largest"] == 0.375


def test_integers_with_a_tolerance(tmp_path: Path) -> None:
    files = saved(tmp_path, "reference.npz", np.uint8([4])), saved(tmp_path, "result.npz", np.uint8([5]))
    assert compare(*files)[0] == DIFFERS
    assert compare(*files, "--atol", 1)[0] == WITHIN


@pytest.mark.parametrize("result", [np.zeros((2, 3), np.float32), np.zeros(2, np.int32)])
def test_another_type_is_a_difference(tmp_path: Path, result: np.ndarray) -> None:
    files = saved(tmp_path, "reference.npz", np.zeros(2, np.float32)), saved(tmp_path, "result.npz", result)
    status, found = compare(*files)
    assert status == DIFFERS
    assert "the reference f32[2]" in found["outputs"][0]["problem"]


def test_another_number_of_outputs_is_an_error(folder: Path, tmp_path: Path) -> None:
    one = saved(tmp_path, "one.npz", np.zeros((2, 4), np.float32))
    done = subprocess.run([INGOT, "compare", one, folder / "model.ingot"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "ingot: the result has 2 outputs, the reference 1: they cannot be compared\n"
    assert done.stdout == ""


def test_outputs_are_matched_by_name(tmp_path: Path) -> None:
    first, second = np.float32([1]), np.float32([2])
    np.savez(tmp_path / "reference.npz", a=first, b=second)
    np.savez(tmp_path / "result.npz", b=second, a=first)
    assert compare(tmp_path / "reference.npz", tmp_path / "result.npz")[0] == WITHIN
    np.savez(tmp_path / "result.npz", b=first, a=second)
    status, found = compare(tmp_path / "reference.npz", tmp_path / "result.npz")
    assert status == DIFFERS
    assert [output["name"] for output in found["outputs"]] == ["b", "a"]
