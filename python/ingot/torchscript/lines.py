# SPDX-License-Identifier: Apache-2.0
"""The lines of the user's model that TorchScript keeps, in the form of Python's stack traces, which torch.fx keeps for nodes."""

from __future__ import annotations

import re

import torch

_SCRIPTED = re.compile(r'File "([^"]+)", line (\d+)')
_TRACED = re.compile(r"^(.+)\((\d+)\): (\S+)$", re.MULTILINE)


def frames_of(node: torch._C.Node, function: str) -> list[str]:
    """The frames of a node of `function`, outermost first; [] if TorchScript kept none."""
    text = node.sourceRange()
    if traced := _TRACED.findall(text):  # innermost first
        return [_frame(*row) for row in reversed(traced)]
    original = text.split("Serialized")[0]
    return [_frame(*row, function) for row in _SCRIPTED.findall(original)]


def _frame(file: str, line: str, function: str) -> str:
    return f'  File "{file}", line {line}, in {function}\n'
