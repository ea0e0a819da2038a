# SPDX-License-Identifier: Apache-2.0
"""Sizes from which their one symbol follows, such as 2*s + 1: arguments bind symbols by them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TEXT = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


@dataclass(frozen=True)
class LinearSize:
    """factor * symbol + offset, where the factor is positive."""

    symbol: str
    factor: int = 1
    offset: int = 0

    @staticmethod
    def of(expression: Any) -> LinearSize | None:
        """Of a sympy expression of that form; None for others."""
        symbols = list(expression.free_symbols)
        if len(symbols) != 1:
            return None
        factor = expression.coeff(symbols[0])
        offset = expression - factor * symbols[0]
        if not (factor.is_Integer and factor > 0 and offset.is_Integer):
            return None
        return LinearSize(str(symbols[0]), int(factor), int(offset))

    @staticmethod
    def parse(text: str) -> LinearSize | None:
        """Of an engine's text of a dim: "2*s0 + 1"; None for others."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        factor, symbol, sign, offset = found.groups()
        return LinearSize(symbol, int(factor or 1), int(f"{sign}{offset}") if offset else 0)

    @property
    def is_alone(self) -> bool:
        return self.factor == 1 and self.offset == 0

    def __call__(self, sizes: Mapping[str, int]) -> int:
        return self.size_of(sizes[self.symbol])

    def size_of(self, value: int) -> int:
        return self.factor * value + self.offset

    def symbol_of(self, size: Any) -> Any:
        """The symbol's value in that size; rounded down if there is none."""
        return (size - self.offset) // self.factor

    def spelled(self, size: str) -> str:
        """What the symbol is, in terms of the size."""
        if self.offset:
            size = f"({size} {'+' if self.offset < 0 else '-'} {abs(self.offset)})"
        return size if self.factor == 1 else f"({size} // {self.factor})"
