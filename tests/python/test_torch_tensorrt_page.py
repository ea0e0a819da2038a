# SPDX-License-Identifier: Apache-2.0
"""docs/coming-from-torch-tensorrt.md is true: names that it lists exist, and those that it calls missing do not."""

import re
from pathlib import Path

import ingot
import pytest
import torch
from ingot.peer_options import PEER_OPTIONS
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


VALUES = {
    "min_block_size": 1, "require_full_compilation": True, "optimization_level": 3, "cpu": "x86-64-v3", "progress": print,
    "device": "cpu", "cache_built_engines": True, "reuse_cached_engines": True, "engine_cache_dir": "off", "engine_cache_size": 1,
    "immutable_weights": True, "strip_engine_weights": True, "refit_identical_engine_weights": True, "timing_cache_path": "x",
    "custom_engine_cache": None,
}  # fmt: skip
SECTIONS = ("Functions", "Arguments", "Runtime", "Debugging, caches and the rest", "Settings")

# Each name of the peer's that callers write.
NAMES = (PAGE.parents[1] / "tests/data/torch_tensorrt_names.txt").read_text().split("\n", 1)[1].split()


def test_tables_are_read() -> None:
    assert len(rows("Functions")) > 15
    assert len(rows("Settings")) > 20
    assert all(rows(section) for section in SECTIONS)


def test_each_name_is_told() -> None:
    text = PAGE.read_text()
    assert [name for name in NAMES if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_each_row_says_what_or_why() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:4]] for line in lines]
    assert [peer for peer, cell, why in cells if not why and cell in ("not yet", "none")] == []


@pytest.mark.parametrize(
    ("peer", "cell", "is_argument"),
    [(*row, section == "Arguments") for section in SECTIONS[:-1] for row in rows(section)],
)
def test_functions(peer: list[str], cell: str, is_argument: bool) -> None:
    if cell.startswith("`ingot."):
        assert all(exists(name) for name in re.findall(r"`([\w.]+)`", cell))
    elif cell.startswith("`torch.compile"):
        assert "ingot" in torch._dynamo.list_backends()
    elif cell.startswith("`"):
        Settings.parse({cell.strip("`"): VALUES.get(cell.strip("`"), [])})
    else:
        assert cell in ("not yet", "none")
        paths = [name.removeprefix("torch_tensorrt.") for name in peer if not is_argument]
        assert not any(exists(f"ingot.{path}") for path in paths)


@pytest.mark.parametrize(("peer", "cell"), rows("Settings"))
def test_settings(peer: list[str], cell: str) -> None:
    if cell.startswith("`"):
        name, _, value = cell.strip("`").partition("=")
        names = [name]
        Settings.parse({name: value.strip('"') or VALUES.get(name, [])})
    else:
        assert cell in ("not yet", "none")
        names = []
    assert set(peer) - set(names) <= set(PEER_OPTIONS)


def test_options_of_the_peer_are_listed() -> None:
    text = PAGE.read_text().split("## Settings")[1].split("\n| ")[0]
    accepted, rejected = text.split("These are accepted with the value")
    listed = [set(re.findall(r"`([a-z_0-9]+)`", part)) for part in (accepted, rejected)]
    idle = {name for name, option in PEER_OPTIONS.items() if option.accepted is None}
    assert listed == [idle, set(PEER_OPTIONS) - idle]


@pytest.mark.parametrize("name", PEER_OPTIONS)
def test_options_of_the_peer(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each way in accepts them with one notice, or rejects what it cannot do."""
    option = PEER_OPTIONS[name]
    model, x = torch.nn.ReLU(), torch.ones(2)
    value = (
        "anything"
        if option.accepted is None
        else "STANDARD"
        if name == "engine_capability"
        else option.accepted[0]
    )
    for ways in ({"ir": "dynamo"}, {"ir": "torch_compile"}):
        caplog.clear()
        assert torch.equal(ingot.compile(model, inputs=[x], **ways, **{name: value})(x), x)
        notices = [record.getMessage() for record in caplog.records if record.name == "ingot"]
        assert [name in notice for notice in notices] == [True]
    if option.accepted is not None:
        for parse in (
            Settings.parse,
            lambda options: torch.compile(model, backend="ingot", options=options)(x),
        ):
            torch._dynamo.reset()
            with pytest.raises(ingot.UserError, match=f'"{name}" of Torch-TensorRT cannot be') as error:
                parse({name: "something"})
            assert error.value.code == "INGOT-U030"
            assert error.value.advice
