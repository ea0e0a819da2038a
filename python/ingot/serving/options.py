# SPDX-License-Identifier: Apache-2.0
"""Options of a served model, checked before a server begins to load it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ingot.engine import Engine
from ingot.errors import UserError


def check_options(options: Mapping[str, Any], constructor: Callable[..., Any]) -> None:
    """UserError for names that neither the constructor nor `Engine.load` has, and for values that no model can use."""
    known = [*_names(constructor), *_names(Engine.load)]
    for name in options:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            raise UserError(
                f'there is no option "{name}"' + (f'; the nearest is "{nearest[0]}"' if nearest else ""),
                code="INGOT-U001",
                advice=f"a served model has: {', '.join(known)}",
            )
    for name, (is_good, wanted) in _VALUES.items():
        if name in options and not is_good(options[name]):
            raise UserError(f"{name} must be {wanted}, not {options[name]!r}", code="INGOT-U002")


def _names(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind != parameter.VAR_KEYWORD and parameter.name not in ("self", "path", "name")
    ]


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _is_seconds(value: Any, most: float) -> bool:
    return type(value) in (int, float) and 0 <= value <= most


_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_batch_size": (lambda value: value is None or _is_count(value, 1 << 31), "an integer from 1"),
    "batch_wait_s": (lambda value: _is_seconds(value, 60), "seconds from 0 to 60"),
    "workers": (lambda value: _is_count(value, 256), "an integer from 1 to 256"),
    "stall_s": (lambda value: _is_seconds(value, float("inf")), "seconds from 0"),
}
