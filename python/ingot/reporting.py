# SPDX-License-Identifier: Apache-2.0
"""What ran where, and why: `ingot.report(compiled)`."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ingot import _core
from ingot.errors import UserError
from ingot.paths import path_text
from ingot.stages import Stage
from ingot.trials import Trial

if TYPE_CHECKING:
    from ingot.profiling import Profile


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

    code: that of the reason, as `ingot explain` takes it; "" if the reason says it all.

    precision: of products and convolutions, with enabled_precisions: the dtype ("f16", "f32 with weights of f16"), or why it
    stays f32 ("f32: ...").

    backend: of an engine for a device, of nodes that do not simply follow it: what runs them, and why ("cpu: ...").
    """

    name: str
    op: str
    source: str = ""
    reason: str = ""
    slow: str = ""
    precision: str = ""
    code: str = ""
    backend: str = ""

    def __str__(self) -> str:
        return f"{self.op} ({self.name}): {self.reason or self.slow}" + (
            f" -- {short_path(self.source)}" if self.source else ""
        )


@dataclass(frozen=True)
class Segment:
    """A partition: nodes that run in one place. backend: "cpu" or "torch".

    `torch_ms` and `engine_ms` are the times of one call of an engine's nodes at the traced sizes, with check_speed=True or
    fallback="fastest"; `is_faster_in_torch`: by more than the noise, and by 5 % at least.
    """

    backend: str
    nodes: tuple[ReportedNode, ...]
    torch_ms: float | None = None
    engine_ms: float | None = None
    is_faster_in_torch: bool = False

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
    builds: list[dict[str, Any]] = field(
        default_factory=list, repr=False, compare=False
    )  # what the builds of the engines reported; empty if they were loaded
    stages: list[Stage] = field(default_factory=list)  # of a staged build, in order; of each graph
    staged: list[Any] = field(default_factory=list, repr=False, compare=False)  # Staged, of each graph
    trials: list[Trial] = field(default_factory=list)  # of fallback="fastest"

    def rows(self) -> list[dict[str, Any]]:
        """The segments as JSON."""
        return [asdict(segment) for segment in self.segments]

    def html(self, profile: Profile | None = None, title: str = "") -> str:
        """The report as one HTML file, which loads nothing from elsewhere: segments, and of each engine what the passes did, its
        kernels with their operators and lines, its memory, and with a profile the time of each step.

        profile: of the same model, by `ingot.profile`. title: by default the name of the first engine.
        """
        times = profile.by_engine() if profile is not None else {}
        if times and max(times) >= len(self.engines):
            raise UserError(
                "the profile is of another model: it has more engines than the report",
                code="INGOT-U039",
                advice="profile the model that the report is about",
            )
        engines = [
            {
                "inspect": json.loads(engine.inspect()),
                "build": self.builds[number] if number < len(self.builds) else None,
                "profile": times.get(number),
            }
            for number, engine in enumerate(self.engines)
        ]
        page = {"title": title, "engines": engines, "segments": self.rows(), "breaks": self.breaks}
        return _core.report_page(json.dumps(page))

    def save_html(
        self, path: str | os.PathLike[str], profile: Profile | None = None, title: str = ""
    ) -> None:
        """Writes the page of `html` to a file, atomically."""
        file = _core.FileWriter(path_text(path))
        file.write(self.html(profile, title).encode())
        file.finish()

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
        lines += [_folded_text(build["folded_weights"]) for build in self.builds if "folded_weights" in build]
        lines += [f"stage: {stage}" for stage in self.stages]
        lines += [f"fallback: {trial}" for trial in self.trials]
        lines += [f"graph break: {each}" for each in self.breaks]
        return "\n".join(lines)


def _folded_text(folded: Mapping[str, int]) -> str:
    return (
        f"immutable weights: the build computed {_counted(folded['operators'], 'operator')} of constants, "
        f"and {_counted(folded['numbers'], 'constant')} are one number everywhere"
    )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")
