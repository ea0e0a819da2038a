# SPDX-License-Identifier: Apache-2.0
"""What kind of model a file holds, for functions that open one kind and are given another."""

from __future__ import annotations

import os
import zipfile
from enum import Enum


class FileKind(Enum):
    """The kind as messages name it, and what opens such a file."""

    ENGINE = "an engine", "open it with ingot.load or ingot.Engine.load"
    PROGRAM = (
        "a program of torch.export",
        "pass it to ingot.build, or torch.export.load(path) to ingot.compile",
    )
    SCRIPT = "TorchScript", "pass it to ingot.ts.compile"
    PICKLE = "a file of torch.save", "load it with torch.load, and compile the model"
    ONNX = "an ONNX model", "pass it to ingot.onnx.compile or ingot.build"
    DAMAGED = "a damaged archive", "copy the file again, or write it again"
    OTHER = "a file of another kind", "pass an engine, or a file of torch.export.save, torch.jit.save or ONNX"

    @property
    def title(self) -> str:
        return self.value[0]

    @property
    def advice(self) -> str:
        return self.value[1]


def file_kind(path: str | os.PathLike[str]) -> FileKind:
    """By the content, except for ONNX, whose files begin with nothing of their own. OSError if it cannot be read."""
    with open(path, "rb") as file:
        magic = file.read(8)
    if magic == b"INGOTENG":
        return FileKind.ENGINE
    if not magic.startswith(b"PK\x03\x04"):
        return FileKind.ONNX if os.fsdecode(path).endswith(".onnx") else FileKind.OTHER
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:
        return FileKind.DAMAGED
    if not members or min(member.header_offset for member in members) > 0:
        return FileKind.DAMAGED  # the end is missing, and the directory is that of an archive inside
    names = {member.filename.rpartition("/")[2] for member in members}
    # Of torch 2.11 to 2.15: TorchScript has data.pkl too, programs have constants in folders.
    kinds = {
        "archive_format": FileKind.PROGRAM,
        "constants.pkl": FileKind.SCRIPT,
        "data.pkl": FileKind.PICKLE,
    }
    return next((kind for name, kind in kinds.items() if name in names), FileKind.OTHER)
