# SPDX-License-Identifier: Apache-2.0
"""disable_passes: single rules and nodes, on each way to an engine; what names no node is told."""

from __future__ import annotations

import json
import logging
import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from errors.inputs import INGOT
from torch import nn


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))))


class Split(Twice):
    """torch runs the search in the middle."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        return torch.relu(self.second(torch.ops.aten.sin.default(x)))


def steps(engine: ingot.Engine) -> int:
    return len(engine.inspect()["main"]["steps"])


def kernels(path: Path, *options: str) -> dict:
    done = subprocess.run(
        [INGOT, "build", path, "--json", "-o", path.with_suffix(".ingot"), *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return Twice().eval()


@pytest.fixture(scope="module")
def file(model: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "twice.pt2"
    torch.export.save(torch.export.export(model, (torch.ones(3, 8),)), path)
    return path


def test_a_node_that_is_not_fused_is_a_kernel_of_its_own(file: Path) -> None:
    counts = [
        kernels(file, *options)["kernels"]
        for options in ((), ("--disable-passes", "fuse@relu_1"), ("--disable-passes", "fuse"))
    ]
    assert counts == [counts[0], counts[0] + 1, counts[0] + 2]


def test_rewrites_are_counted(file: Path) -> None:
    whole = kernels(file)
    runs = [row for row in whole["passes"] if row["is_optional"]]
    fuse = next(k for k in reversed(range(len(runs))) if runs[k]["rewrites"])
    assert runs[fuse]["name"] == "fuse"
    one = kernels(file, "--bisect-passes", f"{fuse}.1")
    assert one["kernels"] == whole["kernels"] + 1
    assert one["last_rewrite"]["pass"] == "fuse"
    assert "in forward" in one["last_rewrite"]["source"]
    nothing = kernels(file, "--bisect-passes", "0")
    assert not any(row["is_optional"] for row in nothing["passes"])
    assert "last_rewrite" not in nothing


def test_level_zero_runs_no_optional_pass(file: Path) -> None:
    assert not any(row["is_optional"] for row in kernels(file, "--optimization-level", "0")["passes"])


def test_what_names_no_node_is_told(file: Path) -> None:
    assert kernels(file, "--disable-passes", "fuse@relu,fuse@gelu*")["disabled_without_node"] == [
        "fuse@gelu*"
    ]
    done = subprocess.run(
        [INGOT, "build", file, "-o", "/dev/null", "--disable-passes", "fuse@gelu*"],
        capture_output=True,
        text=True,
    )
    assert 'the model has no node for "fuse@gelu*"' in done.stdout


def test_python_takes_entries_and_warns(model: nn.Module, caplog: pytest.LogCaptureFixture) -> None:
    x = torch.randn(3, 8)
    with caplog.at_level(logging.WARNING, "ingot"):
        compiled = ingot.compile(
            model, inputs=[x], disable_passes=["fuse@relu", "simplify.add_zero", "fuse@gelu"]
        )
    torch.testing.assert_close(compiled(x), model(x))
    assert [record.getMessage().split('"')[1] for record in caplog.records] == ["fuse@gelu"]


def test_parts_that_torch_splits_share_the_entries(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    model, x = Split().eval(), torch.randn(3, 8)
    options = {"torch_executed_ops": [torch.ops.aten.sin.default], "min_block_size": 1}

    def fused(**more: object) -> list[int]:
        compiled = ingot.compile(model, inputs=[x], **options, **more)
        torch.testing.assert_close(compiled(x), model(x))
        return [
            len(engine.inspect()["main"]["steps"])
            for engine in map(ingot.Engine, ingot.report(compiled).engines)
        ]

    whole = fused()
    assert len(whole) == 2
    with caplog.at_level(logging.WARNING, "ingot"):
        second = fused(disable_passes=["fuse@relu_1", "fuse@nothing"])
    assert second == [whole[0], whole[1] + 1]
    assert [record.getMessage().split('"')[1] for record in caplog.records if record.name == "ingot"] == [
        "fuse@nothing"
    ]
