# SPDX-License-Identifier: Apache-2.0
"""Requests to replicas in Ray Serve, and what happens to those whose replica dies."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from ray import serve
from ray.exceptions import RayActorError, RayTaskError, WorkerCrashedError
from ray.serve.exceptions import ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle

from ingot.errors import DeviceError, Error, UserError

_LOST = (RayActorError, WorkerCrashedError, ReplicaUnavailableError)


class Client:
    """Asks the replicas of an application directly, from any process of the cluster.

    A request whose replica died is sent once more, to another one, if the engine has no state; otherwise it fails with INGOT-D362, since
    the state that it would have changed died too. Errors of the engine are raised as the engine raised them.
    """

    def __init__(self, application: str | DeploymentHandle) -> None:
        """application: its name in `serve.run`, or the handle of its replicas."""
        if isinstance(application, str):
            application = serve.get_deployment_handle("replicas", application)
        self._replicas = application
        self._description: dict[str, Any] | None = None
        self.repeated = 0  # requests that were sent twice

    def infer(self, inputs: dict[str, np.ndarray], timeout_s: float | None = None) -> dict[str, np.ndarray]:
        """The outputs by name. timeout_s: until the request must have begun to run (INGOT-U317)."""
        asking = self._asking(self.describe()["has_state"], timeout_s)
        while True:
            try:
                return self._replicas.infer.remote(inputs, asking.left()).result()
            except Exception as error:
                asking.after(error)

    def describe(self) -> dict[str, Any]:
        """The engine's metadata, and whether it has state."""
        if self._description is None:
            asking = self._asking(False, None)
            while self._description is None:
                try:
                    self._description = self._replicas.describe.remote().result()
                except Exception as error:
                    asking.after(error)
        return self._description

    def refit(self) -> int:
        """All replicas read the file of the deployment's `weights` again, without a restart, and a file that does not fit is an error here;
        returns how many replicas did. Replace the file first, by renaming. Requests that are running end with the old weights.
        """
        try:
            return len(self._replicas.broadcast("refit").results())
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Error) else error from None

    async def infer_async(
        self, inputs: dict[str, np.ndarray], timeout_s: float | None = None
    ) -> dict[str, np.ndarray]:
        asking = self._asking((await self.describe_async())["has_state"], timeout_s)
        while True:
            try:
                return await self._replicas.infer.remote(inputs, asking.left())
            except Exception as error:
                asking.after(error)

    async def describe_async(self) -> dict[str, Any]:
        asking = self._asking(False, None)
        while self._description is None:
            try:
                self._description = await self._replicas.describe.remote()
            except Exception as error:
                asking.after(error)
        return self._description

    def _asking(self, has_state: bool, timeout_s: float | None) -> _Asking:
        return _Asking(self, has_state, timeout_s)


class _Asking:
    """One request, which may be sent twice."""

    def __init__(self, client: Client, has_state: bool, timeout_s: float | None) -> None:
        self._client = client
        self._has_state = has_state
        self._end = None if timeout_s is None else time.monotonic() + timeout_s
        self._is_second = False

    def left(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def after(self, error: Exception) -> None:
        """Returns if the request is to be sent again."""
        if isinstance(error, RayTaskError) and isinstance(error.cause, Error):
            raise error.cause from None
        if not isinstance(error, _LOST):
            raise error
        if self._has_state:
            raise DeviceError(
                "the replica ended while it had the request, which is not sent to another one: the engine has state, and that of the "
                "replica is lost",
                code="INGOT-D362",
                advice="begin again with the first request of the session",
            ) from error
        if self._is_second:
            raise DeviceError(
                "two replicas ended while they had the request, which is not sent a third time",
                code="INGOT-D362",
                advice="look at the logs of the replicas: the request may be what ends them",
            ) from error
        if self._end is not None and time.monotonic() >= self._end:
            raise UserError(
                "the request's deadline passed: the replica that had it ended",
                code="INGOT-U317",
                advice="allow more time",
            ) from error
        self._is_second = True
        self._client.repeated += 1
