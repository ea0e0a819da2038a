# SPDX-License-Identifier: Apache-2.0
"""Files of one kind that are given to a function for another: the error says what they are, and what opens them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot.file_kinds import FileKind, file_kind

X = torch.ones(2, 3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[FileKind, str]:
    folder = tmp_path_factory.mktemp("kinds")
    paths = {kind: str(folder / f"{kind.name.lower()}.file") for kind in FileKind}
    paths[FileKind.ONNX] = str(folder / "model.onnx")
    model = torch.nn.Linear(3, 3).eval()
    program = torch.export.export(model, (X,))
    torch.export.save(program, paths[FileKind.PROGRAM])
    ingot.build(program).save(paths[FileKind.ENGINE])
    torch.jit.save(torch.jit.script(model), paths[FileKind.SCRIPT])
    torch.save(model.state_dict(), paths[FileKind.PICKLE])
    Path(paths[FileKind.ONNX]).write_bytes(b"\x08\x09")
    Path(paths[FileKind.OTHER]).write_bytes(b"text")
    Path(paths[FileKind.DAMAGED]).write_bytes(Path(paths[FileKind.PROGRAM]).read_bytes()[:-100])
    return paths


def test_kinds(files: dict[FileKind, str]) -> None:
    assert {path: file_kind(path) for path in files.values()} == {path: kind for kind, path in files.items()}


def _compile(path: str) -> Any:
    return ingot.compile(path, inputs=[X])


def _compile_script(path: str) -> Any:
    return ingot.ts.compile(path, inputs=[X])


@pytest.mark.parametrize("call", [_compile, _compile_script])
def test_files_that_are_not_torchscript(call: Callable[[str], Any], files: dict[FileKind, str]) -> None:
    for kind, path in files.items():
        if kind is FileKind.SCRIPT:
            call(path)
            continue
        with pytest.raises(ingot.UserError, match=kind.title) as caught:
            call(path)
        assert kind.advice in str(caught.value)
        assert "miniz" not in str(caught.value)


def test_files_that_ingot_did_not_save(files: dict[FileKind, str]) -> None:
    for kind in (FileKind.PICKLE, FileKind.ONNX, FileKind.DAMAGED):
        with pytest.raises(ingot.UserError, match=f"INGOT-U501.*{kind.title}") as caught:
            ingot.load(files[kind])
        assert kind.advice in str(caught.value)
    with pytest.raises(ingot.UserError, match="INGOT-U200"):
        ingot.load(files[FileKind.OTHER])
    for kind in (FileKind.ENGINE, FileKind.PROGRAM, FileKind.SCRIPT):
        assert callable(ingot.load(files[kind]))
