# SPDX-License-Identifier: Apache-2.0
"""Where the time of a call goes, step by step: `print(ingot.profile(compiled, *inputs))`."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ingot import _core
from ingot.engine import Engine
from ingot.errors import UserError
from ingot.paths import path_text
from ingot.reporting import short_path


@dataclass(frozen=True)
class StepTime:
    """One step of an engine. Times are in microseconds, medians over the runs.

    engine: its number among the engines of the report, in execution order.
    operators: (op, name of the model's node, source line) of what the step computes. operations, bytes: arithmetic and memory
    traffic of their definitions, 0 where unknown. roof_share: the minimum time for that work on this machine divided by the measured time.
    """

    name: str
    engine: int
    microseconds: float
    share: float
    operations: int
    bytes: int
    roof_share: float
    operators: tuple[tuple[str, str, str], ...]
    start: float
    last: float

    @property
    def source(self) -> str:
        """The first line of the model that the step computes, "" if unknown."""
        return next((line for _, _, line in self.operators if line), "")


@dataclass(frozen=True)
class Profile:
    """All steps in execution order, engine after engine; `str(profile)` is a table of the slowest.

    microseconds: the median call, including Python and torch's parts; in_engines: the time inside of engines.
    """

    steps: tuple[StepTime, ...]
    microseconds: float
    in_engines: float
    runs: int
    threads: int

    def __str__(self) -> str:
        return self.table()

    def table(self, top: int = 20) -> str:
        """The `top` slowest steps."""
        lines = [
            f"{len(self.steps)} steps, {self.runs} runs, {self.threads} threads: median {self.microseconds:.1f} us per call, "
            f"{self.in_engines:.1f} us in engines",
            f"{'us':>10} {'%':>6} {'roof':>6} {'FLOP':>8} {'traffic':>9}  step",
        ]
        slowest = sorted(self.steps, key=lambda step: -step.microseconds)
        for step in slowest[:top]:
            roof = f"{100 * step.roof_share:.0f} %" if step.operations + step.bytes else ""
            lines.append(
                f"{step.microseconds:10.1f} {100 * step.share:6.1f} {roof:>6} {_scaled(step.operations):>8} "
                f"{_scaled(step.bytes) + 'B':>9}  {step.name}  {short_path(step.source)}".rstrip()
            )
        if len(slowest) > top:
            rest = sum(step.share for step in slowest[top:])
            lines.append(f"{'':>10} {100 * rest:6.1f} the other {len(slowest) - top} steps")
        return "\n".join(lines)

    def by_engine(self) -> dict[int, dict[str, Any]]:
        """What `ingot_context_profile` of the C API reports, by the number of the engine; each has the median of its steps' sum."""
        found: dict[int, dict[str, Any]] = {}
        for step in self.steps:
            engine = found.setdefault(
                step.engine, {"runs": self.runs, "threads": self.threads, "median_ns": 0.0, "steps": []}
            )
            engine["median_ns"] += step.microseconds * 1000
            engine["steps"].append(
                {
                    "name": step.name,
                    "median_ns": step.microseconds * 1000,
                    "share": step.share,
                    "operations": step.operations,
                    "bytes": step.bytes,
                    "roof_share": step.roof_share,
                    "operators": [
                        {"op": op, "name": name, "source": line} for op, name, line in step.operators
                    ],
                }
            )
        return found

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the last run as trace events, which chrome://tracing and Perfetto open; one row per engine."""
        events = [
            {
                "name": step.name, "ph": "X", "pid": 1, "tid": 1 + step.engine, "ts": step.start, "dur": step.last,
                "args": {"operators": step.operators, "operations": step.operations, "bytes": step.bytes},
            }
            for step in self.steps
        ]  # fmt: skip
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1)
        file = _core.FileWriter(path_text(path))
        file.write(text.encode())
        file.finish()


def _scaled(value: float) -> str:
    for prefix in ("", "k", "M", "G"):
        if value < 1000:
            return f"{value:.3g} {prefix}"
        value /= 1000
    return f"{value:.3g} T"


def profile(compiled: Any, *inputs: Any, runs: int = 50, **keywords: Any) -> Profile:
    """Calls `compiled` with `inputs` and `keywords` and times each step of its engines.

    compiled: an Engine, or a result of `ingot.compile` or torch.compile(..., backend="ingot"). runs: measured calls, after
    three warm-up calls. Nothing else should call it meanwhile. UserError if no engine ran.
    """
    if type(runs) is not int or runs < 1:
        raise UserError(f"runs must be a positive number of calls, not {runs!r}", code="INGOT-U002")
    if not callable(compiled):
        _engines_of(compiled)  # whose error says what can be profiled
    for _ in range(3):  # compiles, and warms up
        compiled(*inputs, **keywords)
    engines = _engines_of(compiled)
    times = []
    with _profiled(engines):
        for _ in range(runs):
            start = time.perf_counter_ns()
            compiled(*inputs, **keywords)
            times.append((time.perf_counter_ns() - start) / 1000)
        profiles = enumerate(map(_profile_of, engines))
        found = [(number, each) for number, each in profiles if each is not None]
    if not found:
        raise UserError(
            "no engine ran: torch runs the whole model",
            code="INGOT-U340",
            advice="print ingot.report(compiled)",
        )
    total = sum(step["median_ns"] for _, each in found for step in each["steps"]) or 1
    steps = tuple(_step(row, number, total) for number, each in found for row in each["steps"])
    inside = sum(each["median_ns"] for _, each in found) / 1000
    return Profile(steps, statistics.median(times), inside, runs, found[0][1]["threads"])


def _engines_of(compiled: Any) -> Sequence[_core.Engine]:
    if isinstance(compiled, Engine):
        return [compiled._core]
    from ingot import front

    return front.report(compiled).engines


def _profile_of(engine: _core.Engine) -> dict[str, Any] | None:
    """None if the engine did not run: it belongs to another graph of the model."""
    try:
        return json.loads(engine.profile())
    except UserError as error:
        if error.code != "INGOT-U340":
            raise
        return None


@contextmanager
def _profiled(engines: Sequence[_core.Engine]) -> Iterator[None]:
    for engine in engines:
        engine.set_profiling(True)
    try:
        yield
    finally:
        for engine in engines:
            engine.set_profiling(False)


def _step(row: dict[str, Any], engine: int, total: float) -> StepTime:
    operators = tuple((node["op"], node["name"], node["source"]) for node in row["operators"])
    return StepTime(
        row["name"], engine, row["median_ns"] / 1000, row["median_ns"] / total, row["operations"], row["bytes"],
        row["roof_share"], operators, row["start_ns"] / 1000, row["last_ns"] / 1000,
    )  # fmt: skip
