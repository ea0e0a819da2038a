# SPDX-License-Identifier: Apache-2.0
"""A replica in Ray Serve: one engine on the CPUs or the GPU that Ray assigned to it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import numpy as np
import ray
from ray.util import metrics as ray_metrics

from ingot.serving.model import Model
from ingot.serving.published import Publisher, Sample


class Replica:
    def __init__(self, path: str, name: str, options: dict[str, Any]) -> None:
        gpu = assigned_gpu()
        self._model = Model(path, name, **{**({} if gpu is None else {"device": gpu}), **options})
        self._publisher = Publisher(_RayMetric)

    async def infer(
        self, inputs: dict[str, np.ndarray], timeout_s: float | None = None
    ) -> dict[str, np.ndarray]:
        """A cancelled request leaves the queue."""
        return await asyncio.wrap_future(self._model.submit(inputs, timeout_s))

    async def describe(self) -> dict[str, Any]:
        metadata = self._model.describe()
        return {
            "metadata": metadata,
            "has_state": self._model.has_state,
            "batching": str(self._model.batching),
        }

    async def refit(self) -> None:
        """From the file that replicas begin with."""
        await asyncio.to_thread(self._model.refit)

    def check_health(self) -> None:
        """Ray calls it each health_check_period_s, and replaces the replica if it fails."""
        self._publisher.publish(self._model.metrics())
        self._model.check()

    def __del__(self) -> None:
        """Ray calls it when the replica ends, after the requests that it has."""
        if hasattr(self, "_model"):
            self._model.close(timeout_s=30)


def assigned_gpu() -> int | None:
    """The number in this process of the first GPU that Ray assigned to it; None without one."""
    assigned = [str(gpu) for gpu in ray.get_gpu_ids()]
    if not assigned:
        return None
    visible = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return visible.index(assigned[0]) if assigned[0] in visible else int(assigned[0])


class _RayMetric:
    """Ray exports it as `ray_ingot_...`, with labels for the deployment and the replica."""

    def __init__(self, sample: Sample) -> None:
        kind = ray_metrics.Counter if sample.kind == "counter" else ray_metrics.Gauge
        context = _serve_labels()
        self._metric = kind(sample.name.removesuffix("_total"), sample.help, (*sample.labels, *context))
        self._metric.set_default_tags(context)

    def add(self, value: float, labels: dict[str, str]) -> None:
        self._metric.inc(value, labels)

    def set(self, value: float, labels: dict[str, str]) -> None:
        self._metric.set(value, labels)


def _serve_labels() -> dict[str, str]:
    from ray import serve

    context = serve.get_replica_context()
    return {"application": context.app_name, "replica": context.replica_tag}
