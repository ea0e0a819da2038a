# SPDX-License-Identifier: Apache-2.0
"""The position of an FX node in the user's model."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from torch.fx import Node

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_GENERATED = "<eval_with_key>"  # and a number, which differs between processes
_LIBRARY = (f"{os.sep}torch{os.sep}nn{os.sep}", f"{os.sep}torch{os.sep}_", f"{os.sep}torch{os.sep}fx{os.sep}")


def source_of(node: Node) -> tuple[str, int, str, str]:
    """(file, line, function, module path) of the innermost frame that is not torch's own; ("", 0, "", "") if unknown."""
    file, line, function = _innermost(node.meta.get("stack_trace") or "")
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return file, int(line), function, str(path)


def line_of(node: Node) -> str:
    """The same as errors print it; "" if unknown."""
    return innermost([node.meta.get("stack_trace") or ""])


def innermost(frames: Sequence[str]) -> str:
    """The same of a stack trace, as errors print it."""
    file, line, function = _innermost("".join(frames))
    return f"{file}:{line} in {function}" if file else ""


def _innermost(trace: str) -> tuple[str, str, str]:
    frames = [frame for frame in _FRAME.findall(trace) if not frame[0].startswith(_GENERATED)]
    own = [frame for frame in frames if not any(part in frame[0] for part in _LIBRARY)]
    return (own or frames or [("", "0", "")])[-1]
