# SPDX-License-Identifier: Apache-2.0
"""How long a caller waits."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from ingot.errors import UserError

_LONGEST = 10 * 365 * 86400.0  # further than clocks and locks count


def seconds(value: Any, name: str = "timeout") -> float:
    """From 0 to as good as for ever, which infinity is. UserError for what is not a number."""
    if not isinstance(value, Real) or math.isnan(value):
        raise UserError(f"{name} must be a number of seconds, not {value!r}", code="INGOT-U002")
    return float(min(max(value, 0), _LONGEST))
