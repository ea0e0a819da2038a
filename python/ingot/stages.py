# SPDX-License-Identifier: Apache-2.0
"""What a report says of the stages of a staged build."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Stage:
    """The engines of one optimization level, of one graph.

    state: "waits", "is built", "runs", "ran" (a later stage has replaced it), "is not taken", "has failed", "is stopped"; `reason`
    says why. seconds: from the end of the compilation until it ran. before_ms, after_ms: of one call, all engines of the graph
    together, with the stage before and with this one, on the arguments of a call; None if that was not timed.
    """

    level: int
    state: str = "waits"
    reason: str = ""
    seconds: float | None = None
    before_ms: float | None = None
    after_ms: float | None = None

    def __str__(self) -> str:
        text = f"level {self.level} {self.state}"
        if self.seconds is not None:
            text += f", since {self.seconds:.1f} s after the compilation"
        if self.before_ms is not None and self.after_ms is not None:
            gain = self.before_ms / self.after_ms
            text += f", {self.after_ms:.3f} ms per call instead of {self.before_ms:.3f} ({gain:.2f} times as fast)"
        return f"{text}: {self.reason}" if self.reason else text
