# SPDX-License-Identifier: Apache-2.0
"""Metrics in the registry of the process that MLServer exposes, also from worker processes."""

from __future__ import annotations

from typing import Any

import prometheus_client

from ingot.serving.published import Sample


class PrometheusMetric:
    """A model that is loaded again goes on with the metrics that its predecessor registered."""

    def __init__(self, sample: Sample) -> None:
        known: dict[str, Any] = prometheus_client.REGISTRY._names_to_collectors
        self._metric = known.get(sample.name) or self._make(sample)

    @staticmethod
    def _make(sample: Sample) -> Any:
        if sample.kind == "counter":
            return prometheus_client.Counter(sample.name, sample.help, list(sample.labels))
        return prometheus_client.Gauge(
            sample.name, sample.help, list(sample.labels), multiprocess_mode="livesum"
        )

    def add(self, value: float, labels: dict[str, str]) -> None:
        self._metric.labels(**labels).inc(value)

    def set(self, value: float, labels: dict[str, str]) -> None:
        self._metric.labels(**labels).set(value)
