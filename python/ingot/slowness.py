# SPDX-License-Identifier: Apache-2.0
"""Why, and how much, an engine is slower than torch at one node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slowness:
    """Predicted times of one ATen node in an engine and in torch, on one thread of a CPU, or on a whole GPU."""

    reason: str
    own_ns: float
    peer_ns: float

    @property
    def gain_ns(self) -> float:
        return self.own_ns - self.peer_ns

    def __str__(self) -> str:
        return f"slow in an engine: {self.reason} (predicted {self.own_ns / 1e6:.3g} ms, torch {self.peer_ns / 1e6:.3g} ms)"
