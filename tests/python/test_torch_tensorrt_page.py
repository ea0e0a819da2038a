# SPDX-License-Identifier: Apache-2.0
"""docs/coming-from-torch-tensorrt.md is true: what it says exists does, and what it says is missing is."""

import re
from pathlib import Path

import ingot
import pytest
import torch
from ingot.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-torch-tensorrt.md"


def rows(section: str) -> list[tuple[list[str], str]]:
    """(peer's names, Ingot's cell) of each row of a section's table."""
    text = PAGE.read_text().split(f"## {section}")[1].split("\n## ")[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:4] for line in text.splitlines() if line.startswith("| `")]
    return [(re.findall(r"`([\w.]+)", peer), ingot_cell.strip()) for peer, ingot_cell, _ in lines]


def exists(path: str) -> bool:
    target = ingot
    for name in path.split(".")[1:]:
        target = getattr(target, name, None)
    return target is not None


def test_tables_are_read() -> None:
    assert len(rows("Functions")) > 15
    assert len(rows("Settings")) > 20


@pytest.mark.parametrize(("peer", "cell"), rows("Functions"))
def test_functions(peer: list[str], cell: str) -> None:
    if cell.startswith("`ingot."):
        assert exists(cell.strip("`"))
    elif cell.startswith("`torch.compile"):
        assert "ingot" in torch._dynamo.list_backends()
    else:
        assert cell in ("not yet", "none")
        paths = [name.removeprefix("torch_tensorrt.") for name in peer]
        assert not any(exists(f"ingot.{path}") for path in paths)


@pytest.mark.parametrize(("peer", "cell"), rows("Settings"))
def test_settings(peer: list[str], cell: str) -> None:
    if cell.startswith("`"):
        names = [cell.strip("`")]
    else:
        assert cell in ("not yet", "none")
        names = []
    values = {
        "min_block_size": 1,
        "require_full_compilation": True,
        "optimization_level": 3,
        "cpu": "x86-64-v3",
    }
    for name in names:
        Settings.parse({name: values.get(name, [])})
    for name in set(peer) - set(names):
        with pytest.raises(ingot.UserError, match="no option"):
            Settings.parse({name: 1})
