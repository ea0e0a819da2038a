# SPDX-License-Identifier: Apache-2.0
"""Counters of requests and batches, as text for Prometheus like those of engines."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot.errors import Error, UserError
from ingot.serving.batches import Answer

if TYPE_CHECKING:
    from ingot.serving.batcher import Request

OUTCOMES = ("ok", "wrong", "failed", "cancelled", "expired")
_TOTALS = {
    "batches": "Calls of the engine for one request or several.",
    "batched_requests": "Requests that shared their call with others.",
    "queue_seconds": "Time that requests waited before their batch ran, summed up.",
    "run_seconds": "Time that batches ran, summed up.",
}


class Counts:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._refits: Counter[str] = Counter()
        self._totals: dict[str, float] = dict.fromkeys(_TOTALS, 0)
        self._failures = 0

    @property
    def failures(self) -> int:
        """Batches since the last one that did not fail for a reason of the engine or the device."""
        return self._failures

    def add_request(self, outcome: str) -> None:
        with self._lock:
            self._requests[outcome] += 1

    def add_refit(self, outcome: str) -> None:
        with self._lock:
            self._refits[outcome] += 1

    def add_batch(
        self, batch: Sequence[Request], answers: Sequence[Answer], begin: float, end: float
    ) -> None:
        outcomes = [outcome_of(answer) for answer in answers]
        with self._lock:
            self._requests.update(outcomes)
            self._failures = self._failures + 1 if "failed" in outcomes else 0
            self._totals["batches"] += 1
            self._totals["batched_requests"] += len(batch) if len(batch) > 1 else 0
            self._totals["queue_seconds"] += sum(begin - request.arrival for request in batch)
            self._totals["run_seconds"] += end - begin

    def text(self, name: str) -> str:
        label = name.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
        with self._lock:
            requests, refits, totals = Counter(self._requests), Counter(self._refits), dict(self._totals)
        lines = _by_outcome("requests", "Requests by what became of them.", label, requests, OUTCOMES)
        lines += _by_outcome("refits", "Readings of the file of weights.", label, refits, ("ok", "failed"))
        for key, value in totals.items():
            metric = f"ingot_serving_{key}_total"
            lines += [f"# HELP {metric} {_TOTALS[key]}", f"# TYPE {metric} counter"]
            lines.append(f'{metric}{{engine="{label}"}} {value:.9g}')
        return "\n".join(lines) + "\n"


def _by_outcome(key: str, help: str, label: str, counts: Counter[str], outcomes: Sequence[str]) -> list[str]:
    metric = f"ingot_serving_{key}_total"
    rows = [f'{metric}{{engine="{label}",outcome="{outcome}"}} {counts[outcome]}' for outcome in outcomes]
    return [f"# HELP {metric} {help}", f"# TYPE {metric} counter", *rows]


def outcome_of(answer: Answer) -> str:
    """wrong: the request's own fault."""
    if not isinstance(answer, Error):
        return "ok"
    return "wrong" if isinstance(answer, UserError) else "failed"
