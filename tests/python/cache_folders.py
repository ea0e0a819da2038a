# SPDX-License-Identifier: Apache-2.0
"""What tests look at in the folder of a cache."""

from __future__ import annotations

from pathlib import Path


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("??/*") if len(path.name) == 62)
