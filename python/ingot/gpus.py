# SPDX-License-Identifier: Apache-2.0
"""Which GPU of the machine a caller means. Uses torch only where the process has imported it."""

from __future__ import annotations

import re
import sys
from typing import Any

from ingot.errors import UserError


def number(device: Any) -> int:
    """The number of a GPU: 1 of 1, "cuda:1" or torch.device("cuda", 1); of None and "cuda" that of `current`."""
    if device is None:
        return current()
    if type(device) is int and 0 <= device < 2**31:
        return device
    found = re.fullmatch(r"cuda(?::(\d+))?", str(device))
    if found is None:
        raise UserError(
            f"device is a GPU, not {device!r}",
            code="INGOT-U002",
            advice='give "cuda:1", torch.device("cuda", 1) or 1; engines for the host need none',
        )
    return current() if found[1] is None else int(found[1])


def current() -> int:
    """torch's current GPU if it uses GPUs, otherwise the first."""
    torch = sys.modules.get("torch")
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0
