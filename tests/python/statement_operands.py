# SPDX-License-Identifier: Apache-2.0
"""Dims and sizes of the operands of random statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random_programs import Drawing


def dim_of(drawing: Drawing, name: str) -> int:
    rank = drawing.value(name).dim()
    return drawing.random.randrange(-rank, rank) if rank else 0


def size_of(drawing: Drawing, name: str, dim: int) -> int:
    value = drawing.value(name)
    return value.shape[dim] if value.dim() else 1
