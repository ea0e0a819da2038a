# SPDX-License-Identifier: Apache-2.0
"""Compiling for Windows by the names of Torch-TensorRT, which runs here too, and for aarch64 (tests/platforms runs both)."""

from __future__ import annotations

import json
from pathlib import Path

import ingot
import pytest
import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 2)).eval()


class InParts(nn.Module):
    """torch runs the determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.det(torch.sin(self.inner(x))) * 2


def test_an_engine_file_is_for_every_x86_64_v3(tmp_path: Path) -> None:
    x = torch.randn(3, 6)
    ingot.cross_compile_for_windows(model(), tmp_path / "model.ingot", inputs=[x])
    loaded = ingot.load_cross_compiled_exported_program(tmp_path / "model.ingot")
    assert loaded.target.startswith("cpu:x86-64-v3 ")
    assert loaded.inspect()["platforms"] == ["linux-x86-64", "windows-x86-64"]
    torch.testing.assert_close(loaded(x), model()(x))


def test_programs_in_parts_are_saved_and_loaded(tmp_path: Path) -> None:
    module, x = InParts().eval(), torch.randn(4, 4)
    ingot.cross_compile_for_windows(
        module, tmp_path / "model.pt2", inputs=[x], torch_executed_ops=["aten._linalg_det"]
    )
    loaded = ingot.load_cross_compiled_exported_program(str(tmp_path / "model.pt2"))
    torch.testing.assert_close(loaded(x), module(x))


def test_exported_programs(tmp_path: Path) -> None:
    x = torch.randn(3, 6)
    program = torch.export.export(model(), (x,))
    compiled = ingot.dynamo.cross_compile_for_windows(program, inputs=[x])
    torch.testing.assert_close(compiled(x), model()(x))  # here, before it is written
    for name in ("model.pt2", "model.ingot"):
        ingot.dynamo.save_cross_compiled_exported_program(compiled, tmp_path / name)
        loaded = ingot.load_cross_compiled_exported_program(tmp_path / name)
        torch.testing.assert_close(loaded(x), model()(x))


def test_the_target_changes_defaults_only(tmp_path: Path) -> None:
    """The file is that of a build that names the processor."""
    program = torch.export.export(model(), (torch.randn(3, 6),))
    files = []
    for number, options in enumerate(
        ({"target": "windows-x86-64"}, {"target": "linux-x86-64"}, {"cpu": "x86-64-v3"})
    ):
        path = tmp_path / f"{number}.ingot"
        ingot.build(program, reuse_cached_engines=False, **options).save(path)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]


def test_another_processor_than_this_one(tmp_path: Path) -> None:
    """Its code cannot run here, so that the engine holds the model's own weights; loading says what is missing."""
    wanted = "x86-64-v4+vnni+bf16+fp16+amx-tile+amx-bf16+amx-int8"
    path = tmp_path / "model.ingot"
    program = torch.export.export(model(), (torch.randn(3, 6),))
    ingot.build(program, target="windows-x86-64", cpu=wanted).save(path)
    here = ingot.build(program, cpu="native").target.split()[0]
    if wanted in here:
        pytest.skip("this processor has everything")
    with pytest.raises(ingot.UserError, match="INGOT-U220") as caught:
        ingot.load_cross_compiled_exported_program(path)
    assert wanted in str(caught.value)
    assert here.removeprefix("cpu:") in str(caught.value)


@pytest.mark.parametrize("options", [{"target": "linux-aarch64"}, {"cpu": "aarch64"}], ids=["target", "cpu"])
def test_another_architecture(tmp_path: Path, options: dict[str, str]) -> None:
    """tests/platforms runs such engines."""
    program = torch.export.export(model(), (torch.randn(3, 6),))
    built = ingot.build(program, **options)
    assert built.target.startswith("cpu:aarch64 ")
    assert built.inspect()["platforms"] == ["linux-aarch64"]
    built.save(tmp_path / "model.ingot")
    with pytest.raises(ingot.UserError, match=r"INGOT-U220.*with aarch64; this one has x86-64"):
        ingot.Engine.load(tmp_path / "model.ingot")


@pytest.mark.parametrize("target", ["windows", "windows-aarch64", "WINDOWS-X86-64", "linux"])
def test_unknown_platforms(target: str) -> None:
    with pytest.raises(
        ingot.UserError, match=r"(?s)INGOT-U002.*linux-x86-64, windows-x86-64 or linux-aarch64"
    ):
        ingot.compile(model(), inputs=[torch.randn(3, 6)], target=target)


def test_contradictions(tmp_path: Path) -> None:
    x = torch.randn(3, 6)
    with pytest.raises(ingot.UserError, match="INGOT-U002"):
        ingot.cross_compile_for_windows(model(), tmp_path / "a.ingot", inputs=[x], target="linux-x86-64")
    with pytest.raises(ingot.UserError, match="INGOT-U002"):
        ingot.compile(model(), inputs=[x], target="windows-x86-64", cpu="aarch64")
    with pytest.raises(ingot.UserError, match="INGOT-U002"):
        ingot.compile(model(), inputs=[x], target="linux-aarch64", cpu="x86-64-v3")
    assert list(tmp_path.iterdir()) == []


def test_parts_are_no_engine_file(tmp_path: Path) -> None:
    with pytest.raises(ingot.Error):
        ingot.cross_compile_for_windows(
            InParts().eval(),
            tmp_path / "a.ingot",
            inputs=[torch.randn(4, 4)],
            torch_executed_ops=["aten._linalg_det"],
        )
    assert list(tmp_path.iterdir()) == []


def test_inspect_prints_platforms(tmp_path: Path) -> None:
    ingot.cross_compile_for_windows(model(), tmp_path / "a.ingot", inputs=[torch.randn(3, 6)])
    described = ingot.Engine.load(tmp_path / "a.ingot").inspect()
    assert json.dumps(described["platforms"]) == '["linux-x86-64", "windows-x86-64"]'
