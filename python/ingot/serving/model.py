# SPDX-License-Identifier: Apache-2.0
"""What the integrations of model servers have in common: an engine file that is loaded, batched, watched, refitted and unloaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from ingot.engine import Engine
from ingot.errors import DeviceError, UserError, kind_of
from ingot.metrics_text import metrics
from ingot.serving.axis import BatchAxis
from ingot.serving.batcher import Batcher
from ingot.serving.counts import Counts
from ingot.serving.options import check_options
from ingot.serving.weights import WeightFile

_MOST_FAILURES = 3  # one after the other, before the model counts as broken


class Model:
    """An engine that answers requests of many clients, several of them in one call where its signature allows it.

    path: of the engine file, which is mapped: replicas on one machine share its memory. max_batch_size: rows per call, at most and by
    default what the engine accepts. batch_wait_s: how long a request waits for others while a thread is free; by default not at all, so
    that batches are what arrived during the batch before. weights: a file to refit from now, and whenever it is replaced.
    workers: calls at a time. stall_s: a call that takes longer makes `check` fail.
    Other options are those of `Engine.load`; all of the file is checked first (`verify="full"`).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "model",
        max_batch_size: int | None = None,
        batch_wait_s: float = 0.0,
        workers: int = 1,
        weights: str | os.PathLike[str] | None = None,
        stall_s: float = 600.0,
        **load: Any,
    ) -> None:
        own = {
            "max_batch_size": max_batch_size,
            "batch_wait_s": batch_wait_s,
            "workers": workers,
            "stall_s": stall_s,
        }
        check_options({**own, **load}, Model)
        self.name = name
        self.engine = Engine.load(path, **{"verify": "full", **load})
        self.inputs = self.engine.inputs
        self.outputs = self.engine.outputs
        self.has_state = bool(self.engine._core.states())
        self._names = [port.name for port in self.inputs]
        self._stall_s = stall_s
        counts = Counts()
        self._weights = None if weights is None else WeightFile(self.engine, os.fspath(weights), counts)
        self._batcher = Batcher(self.engine, counts, max_batch_size, batch_wait_s, workers)

    @property
    def batching(self) -> BatchAxis | str:
        """The dimension that requests share and its bounds, or why they run one by one."""
        return self._batcher.axis

    @property
    def counts(self) -> Counts:
        return self._batcher.counts

    def submit(self, inputs: Mapping[str, np.ndarray], timeout_s: float | None = None) -> Future:
        """The outputs by name. Errors are the engine's own; with INGOT-U317 if the request did not begin to run within timeout_s."""
        return self.submit_all([inputs], timeout_s)[0]

    def submit_all(
        self, requests: Sequence[Mapping[str, np.ndarray]], timeout_s: float | None = None
    ) -> list[Future]:
        """Requests that a server gathered: those that fit run together."""
        asked = self._batcher.submit([self._in_order(inputs) for inputs in requests], timeout_s)
        return [_named(inner, [port.name for port in self.outputs]) for inner in asked]

    def infer(
        self, inputs: Mapping[str, np.ndarray], timeout_s: float | None = None
    ) -> dict[str, np.ndarray]:
        return self.submit(inputs, timeout_s).result()

    def _in_order(self, inputs: Mapping[str, Any]) -> list[np.ndarray]:
        if not isinstance(inputs, Mapping) or set(inputs) != set(self._names):
            found = _listed(inputs) if isinstance(inputs, Mapping) else kind_of(inputs)
            raise UserError(
                f"the inputs are {found}, but the engine has {_listed(self._names)}",
                code="INGOT-U318",
                advice="pass each of the engine's inputs by its name",
            )
        return [_array(name, inputs[name]) for name in self._names]

    def refit(self, weights: Any = None) -> None:
        """As `Engine.refit`; by default from the file that the model was made with. Requests that are running end with the old weights."""
        if weights is not None:
            self.engine.refit(weights)
        elif self._weights is not None:
            self._weights.refit()
        else:
            raise UserError(
                f"the model '{self.name}' has no file of weights to refit from",
                code="INGOT-U371",
                advice="name one when you load or deploy it (weights=), and replace that file before you ask for a refit",
            )

    def check(self) -> None:
        """DeviceError if the model cannot be expected to answer: for health checks."""
        reason = ""
        if not self._batcher.is_alive():
            reason = "its thread has ended"
        elif self._batcher.counts.failures >= _MOST_FAILURES:
            reason = f"its last {self._batcher.counts.failures} calls failed"
        elif self._batcher.slowest() > self._stall_s:
            reason = f"a call has run for {self._batcher.slowest():.0f} s"
        if reason:
            raise DeviceError(
                f"the model '{self.name}' is not healthy: {reason}",
                code="INGOT-D361",
                advice="load it anew; the log of the server has the errors of the calls",
            )

    def metrics(self) -> str:
        """Text for Prometheus: what the engine did, and what became of requests."""
        return metrics({self.name: self.engine}) + self._batcher.counts.text(self.name)

    def describe(self) -> dict[str, Any]:
        """Metadata of the Open Inference Protocol."""
        from ingot.serving.protocol import tensor_metadata

        return {
            "name": self.name,
            "versions": [],
            "platform": "ingot",
            "inputs": [tensor_metadata(port) for port in self.inputs],
            "outputs": [tensor_metadata(port) for port in self.outputs],
        }

    def close(self, timeout_s: float | None = None) -> None:
        """Answers what was asked, and accepts nothing more (INGOT-D360)."""
        self._batcher.close(timeout_s)
        if self._weights is not None:
            self._weights.close()


def _named(inner: Future, names: list[str]) -> Future:
    """The same with outputs by name, and cancelled with it."""
    result: Future = Future()

    def forward(done: Future) -> None:
        if done.cancelled() or not result.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(dict(zip(names, done.result(), strict=True)))

    result.add_done_callback(lambda outer: outer.cancelled() and inner.cancel())
    inner.add_done_callback(forward)
    return result


def _array(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise UserError(
            f"input '{name}' is not an array: {error}",
            code="INGOT-U309",
            advice="pass a numpy array, or lists of equal lengths",
        ) from None


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in sorted(map(str, names))) or "none"
