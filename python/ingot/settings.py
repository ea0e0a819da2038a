# SPDX-License-Identifier: Apache-2.0
"""Options, the same in compile(...), build(...), dynamo.compile(...) and torch.compile(options={...})."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingot import _core
from ingot.errors import UserError

# Options that this package acts on itself; all others go to the compiler (`ingot build --help` lists them).
_OWN = {
    "require_full_compilation": "an UnsupportedError instead of running parts of the model in torch",
    "min_block_size": "stretches of fewer nodes stay in torch",
    "torch_executed_ops": 'ATen overloads ("aten.add.Tensor") that stay in torch',
    "progress": "called as progress(phase, done, total, remaining_seconds); returning False cancels",
}


@dataclass
class Settings:
    """Parsed options. `compiler` holds texts for the compiler, by name."""

    require_full_compilation: bool = False
    min_block_size: int = 1
    torch_executed_ops: tuple[str, ...] = ()
    progress: Callable[[str, int, int, float], Any] | None = None
    compiler: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(options: Mapping[str, Any]) -> Settings:
        known = [row[0] for row in _core.options()]
        settings = Settings()
        for name, value in options.items():
            if name in _OWN:
                setattr(settings, name, _checked(name, value))
            elif name in known:
                settings.compiler[name] = _text(value)
            else:
                nearest = difflib.get_close_matches(name, [*known, *_OWN], n=1, cutoff=0.0)
                raise UserError(
                    f'there is no option "{name}"; the nearest is "{nearest[0]}"',
                    code="INGOT-U001",
                    advice="`ingot build --help` lists all options",
                )
        return settings


def _checked(name: str, value: Any) -> Any:
    if name == "torch_executed_ops":
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise UserError(f'option "{name}" is a list of operators, not {value!r}', code="INGOT-U002")
        return tuple(str(item) for item in value)
    if name == "progress" and value is not None and not callable(value):
        raise UserError(f'option "{name}" is a function, not {value!r}', code="INGOT-U002")
    expected = {"require_full_compilation": bool, "min_block_size": int}.get(name)
    if expected is not None and not isinstance(value, expected):
        raise UserError(f'option "{name}" is a {expected.__name__}, not {value!r}', code="INGOT-U002")
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set)):
        return ",".join(_text(item) for item in value)
    return str(value)
