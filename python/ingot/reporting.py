# SPDX-License-Identifier: Apache-2.0
"""What ran where, and why: `ingot.report(compiled)`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReportedNode:
    """One ATen node. `reason` says why it is outside of an engine, "" if it is inside."""

    name: str
    op: str
    source: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Segment:
    """A stretch of nodes that runs in one place: backend "cpu" or "torch"."""

    backend: str
    nodes: tuple[ReportedNode, ...]


@dataclass
class Report:
    """All segments in execution order; `str(report)` is a readable page."""

    segments: list[Segment] = field(default_factory=list)

    @property
    def fallbacks(self) -> list[ReportedNode]:
        """Nodes that torch runs."""
        return [node for segment in self.segments if segment.backend == "torch" for node in segment.nodes]

    def __str__(self) -> str:
        lines = []
        for number, segment in enumerate(self.segments):
            lines.append(f"segment {number}: {segment.backend}, {len(segment.nodes)} nodes")
            if segment.backend == "torch":
                for node in segment.nodes:
                    lines.append(
                        f"  {node.op} ({node.name}): {node.reason}"
                        + (f" -- {node.source}" if node.source else "")
                    )
        return "\n".join(lines)
