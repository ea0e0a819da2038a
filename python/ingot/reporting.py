# SPDX-License-Identifier: Apache-2.0
"""What ran where, and why: `ingot.report(compiled)`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


def short_path(source: str) -> str:
    """A position in a file, relative to the packages that it is in or to the working directory."""
    roots = [*(path for path in sys.path if path.endswith(("site-packages", "dist-packages"))), os.getcwd()]
    for root in roots:
        if source.startswith(os.path.join(root, "")) and root != os.sep:
            return source[len(os.path.join(root, "")) :]
    return source


@dataclass(frozen=True)
class ReportedNode:
    """One ATen node. `reason` is why it is outside of an engine, "" if it is inside; `slow` why it is slow inside.

    precision: of products and convolutions, with enabled_precisions: the dtype ("f16", "f32 with weights of f16"), or why it
    stays f32 ("f32: ...").
    """

    name: str
    op: str
    source: str = ""
    reason: str = ""
    slow: str = ""
    precision: str = ""

    def __str__(self) -> str:
        return f"{self.op} ({self.name}): {self.reason or self.slow}" + (
            f" -- {short_path(self.source)}" if self.source else ""
        )


@dataclass(frozen=True)
class Segment:
    """A partition: nodes that run in one place. backend: "cpu" or "torch".

    `torch_ms` and `engine_ms` are the times of one call of an engine's nodes at the traced sizes, with check_speed=True.
    """

    backend: str
    nodes: tuple[ReportedNode, ...]
    torch_ms: float | None = None
    engine_ms: float | None = None

    def __str__(self) -> str:
        text = f"{self.backend}, {len(self.nodes)} node{'' if len(self.nodes) == 1 else 's'}"
        slow = sum(node.slow != "" for node in self.nodes)
        if slow:
            text += f", {slow} of them slow"
        if self.torch_ms is not None and self.engine_ms is not None:
            ratio = self.torch_ms / self.engine_ms
            text += f", {self.engine_ms:.3f} ms per call, torch {self.torch_ms:.3f} ms ({ratio:.2f} of torch's speed)"
        return text


@dataclass
class Report:
    """All segments in execution order; `str(report)` is a readable page."""

    segments: list[Segment] = field(default_factory=list)
    engines: list[Any] = field(
        default_factory=list, repr=False, compare=False
    )  # _core.Engine, in execution order
    breaks: list[str] = field(default_factory=list)  # why Dynamo ended graphs, of torch.compile

    def rows(self) -> list[dict[str, Any]]:
        """The segments as JSON."""
        return [asdict(segment) for segment in self.segments]

    @staticmethod
    def of_rows(rows: Sequence[Mapping[str, Any]], engines: Sequence[Any]) -> Report:
        """The report with the segments `rows`."""
        segments = [
            Segment(**{**row, "nodes": tuple(ReportedNode(**node) for node in row["nodes"])}) for row in rows
        ]
        return Report(segments, list(engines))

    @property
    def fallbacks(self) -> list[ReportedNode]:
        """Nodes that torch runs."""
        return [node for segment in self.segments if segment.backend == "torch" for node in segment.nodes]

    @property
    def slow(self) -> list[ReportedNode]:
        """Nodes that an engine runs slower than torch would: supported, and listed by `str(report)`."""
        return [node for segment in self.segments for node in segment.nodes if node.slow]

    @property
    def precisions(self) -> Counter[str]:
        """How many nodes enabled_precisions has put into which dtypes, and how many stay f32 for which reason."""
        nodes = [node for segment in self.segments for node in segment.nodes]
        return Counter(node.precision for node in nodes if node.precision)

    @property
    def totals(self) -> str:
        """How much of the program runs in engines, in a line."""
        nodes = sum(len(segment.nodes) for segment in self.segments)
        in_torch = [segment for segment in self.segments if segment.backend == "torch"]
        taken = nodes - sum(len(segment.nodes) for segment in in_torch)
        share = 100 * taken // nodes if nodes else 100  # rounded down: all nodes are 100 %, and only they
        engines, partitions = len(self.segments) - len(in_torch), len(in_torch)
        return (
            f"{share} % of the nodes ({taken} of {nodes}), {_counted(engines, 'engine')}, "
            f"{_counted(partitions, 'torch partition')}"
        )

    def __str__(self) -> str:
        lines = [self.totals]
        lines += [f"precision: {count} in {what}" for what, count in sorted(self.precisions.items())]
        for number, segment in enumerate(self.segments):
            lines.append(f"segment {number}: {segment}")
            lines += [f"  {node}" for node in segment.nodes if segment.backend == "torch" or node.slow]
        lines += [f"graph break: {each}" for each in self.breaks]
        return "\n".join(lines)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")
