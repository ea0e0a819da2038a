# SPDX-License-Identifier: Apache-2.0
"""Gives a wheel another platform: tag_wheel.py FILE PLATFORM rewrites its name and its WHEEL file (PEP 425, PEP 427)."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path


def retag(wheel: Path, platform: str) -> Path:
    """Writes the wheel under its new name, and removes the old one. `platform` without the architecture: manylinux_2_36."""
    machine = wheel.stem.rsplit("-", 1)[1].removeprefix("linux_")
    target = wheel.with_name(f"{wheel.stem.rsplit('-', 1)[0]}-{platform}_{machine}.whl")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        contents = {info: old.read(info) for info in old.infolist()}
        for info in contents:
            if info.filename.endswith(".dist-info/WHEEL"):
                text = contents[info].decode()
                contents[info] = re.sub(r"-linux_(\w+)", rf"-{platform}_\1", text).encode()
                changed = (info.filename, contents[info])
        for info, content in contents.items():
            if info.filename.endswith(".dist-info/RECORD"):
                content = record(content.decode(), *changed).encode()
            new.writestr(info, content, zipfile.ZIP_DEFLATED)
    wheel.unlink()
    return target


def record(text: str, name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    row = f"{name},sha256={digest},{len(content)}"
    return "".join((row if line.startswith(f"{name},") else line) + "\n" for line in text.splitlines())


if __name__ == "__main__":
    print(retag(Path(sys.argv[1]), sys.argv[2]))
