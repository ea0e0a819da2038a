# SPDX-License-Identifier: Apache-2.0
"""Paths that callers give. A file's name may have any bytes: those that are not UTF-8 are surrogates in its text."""

from __future__ import annotations

import os
from typing import Any

from ingot.errors import UserError, require


def path_text(path: Any, name: str = "the path") -> str:
    """UserError if it is not a path, such as the number of an open file, or one that no file can have."""
    require(path, (str, os.PathLike), f"{name} must be a str or an os.PathLike")
    text = os.fsdecode(path)
    if text and "\0" not in text and _is_encodable(text):
        return text
    raise UserError(
        f"{name} is {shown(text)!r}, which no file is called",
        code="INGOT-U120",
        advice="pass the name of a file",
    )


def shown(path: str) -> str:
    """For messages, which are UTF-8."""
    return path.encode(errors="backslashreplace").decode()


def _is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True
