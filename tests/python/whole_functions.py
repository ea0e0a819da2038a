# SPDX-License-Identifier: Apache-2.0
"""Functions as one engine each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def in_engine(function: Callable[..., Any], args: list[torch.Tensor], dynamic: bool = False) -> Any:
    """The result of one engine that holds the whole function."""
    torch._dynamo.reset()
    compiled = torch.compile(
        function,
        backend="ingot",
        dynamic=dynamic,
        fullgraph=True,
        options={"require_full_compilation": True, "check_speed": False},
    )
    return compiled(*args)
