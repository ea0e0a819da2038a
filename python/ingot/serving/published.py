# SPDX-License-Identifier: Apache-2.0
"""Passes the text of `ingot.metrics` on to the metrics of a server: what was added to counters since the last time, and gauges."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class Sample(NamedTuple):
    name: str
    kind: str  # "counter" or "gauge"
    help: str
    labels: dict[str, str]
    value: float


class Metric(Protocol):
    """One of the server's metrics."""

    def add(self, value: float, labels: dict[str, str]) -> None: ...

    def set(self, value: float, labels: dict[str, str]) -> None: ...


def parse(text: str) -> list[Sample]:
    about: dict[str, dict[str, str]] = {"HELP": {}, "TYPE": {}}
    samples = []
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            about[what][name] = rest
        elif found := _SAMPLE.match(line):
            name = found["name"]
            labels = {
                key: re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), value)
                for key, value in _LABEL.findall(found["labels"] or "")
            }
            samples.append(
                Sample(name, about["TYPE"][name], about["HELP"][name], labels, float(found["value"]))
            )
    return samples


class Publisher:
    """make: the server's metric for a sample of which it has none yet."""

    def __init__(self, make: Callable[[Sample], Any]) -> None:
        self._make = make
        self._metrics: dict[str, Any] = {}
        self._last: dict[tuple, float] = {}
        self._gauges: dict[str, Sample] = {}

    def publish(self, text: str) -> None:
        for sample in parse(text):
            if sample.name not in self._metrics:
                self._metrics[sample.name] = self._make(sample)
            metric = self._metrics[sample.name]
            if sample.kind == "gauge":
                self._gauges[sample.name] = sample
                metric.set(sample.value, sample.labels)
                continue
            key = (sample.name, *sorted(sample.labels.items()))
            added = sample.value - self._last.get(key, 0)
            self._last[key] = sample.value
            if added > 0:
                metric.add(added, sample.labels)

    def clear(self) -> None:
        """Gauges of a model that has ended are 0; its counters stay."""
        for name, sample in self._gauges.items():
            self._metrics[name].set(0, sample.labels)
