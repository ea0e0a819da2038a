# SPDX-License-Identifier: Apache-2.0
"""The command line with standard streams that are closed or full: lost results are an error, lost notes are not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from errors.inputs import INGOT

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.pt2 and model.ingot."""
    folder = tmp_path_factory.mktemp("streams")
    program = torch.export.export(torch.nn.Linear(4, 4).eval(), (torch.ones(1, 4),))
    torch.export.save(program, folder / "model.pt2")
    subprocess.run([INGOT, "build", folder / "model.pt2"], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "build model.pt2 -o other.ingot --json",
        "bench model.ingot --seconds 0.01",
        "cache keygen other.key",
        "compare model.pt2 model.ingot",
        "diff model.ingot model.ingot",
        "explain U001",
        "inspect model.ingot --json",
        "opt --list",
        "profile model.ingot --seconds 0.01",
        "run model.ingot",
        "verify model.ingot",
    ],
)
def test_lost_results_are_an_error(command: str, folder: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [INGOT, *command.split()], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.count("ingot: ") == 1
    assert "cannot write to" in done.stderr


def test_an_error_that_was_reported_stays_the_only_one(folder: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [INGOT, "inspect", "none", "--json"], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.count("ingot: ") == 1
    assert "INGOT-U120" in done.stderr


def test_lost_notes_are_not_an_error(folder: Path) -> None:
    with FULL.open("w") as full:
        subprocess.run(
            [INGOT, "build", "model.pt2", "-o", "noted.ingot"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=full,
        )
    assert (folder / "noted.ingot").read_bytes() == (folder / "model.ingot").read_bytes()


def close(*files: int) -> Callable[[], None]:
    return lambda: [os.close(file) for file in files] and None


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_files_do_not_get_the_numbers_of_closed_streams(closed: tuple[int, ...], folder: Path) -> None:
    subprocess.run(
        [INGOT, "build", "model.pt2", "-o", "closed.ingot", "--json"],
        cwd=folder,
        check=True,
        preexec_fn=close(*closed),
    )
    assert (folder / "closed.ingot").read_bytes() == (folder / "model.ingot").read_bytes()
