# SPDX-License-Identifier: Apache-2.0
"""What a report says of partitions that were tried in torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """Partitions that torch ran faster than their engines, at the traced sizes, and the whole module with them there.

    partitions: the first and the last node of each, with its times in torch and in the engine. torch runs them (`is_taken`) if
    that makes the whole module faster, crossings included.
    """

    partitions: tuple[tuple[str, str, float, float], ...]  # first node, last node, torch_ms, engine_ms
    before_ms: float
    after_ms: float
    is_taken: bool

    def __str__(self) -> str:
        rows = [
            f"{first} .. {last} took {torch_ms:.3f} ms in torch, {engine_ms:.3f} ms in an engine"
            for first, last, torch_ms, engine_ms in self.partitions
        ]
        what = "they run in torch" if self.is_taken else "they stay in engines"
        whole = f"the module takes {self.after_ms:.3f} ms with them in torch, {self.before_ms:.3f} ms without"
        return f"{'; '.join(rows)}; {whole}: {what}"
