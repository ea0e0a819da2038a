# SPDX-License-Identifier: Apache-2.0
"""Taking one model out of a PyTriton server that goes on. PyTriton does so for all models when it stops, and has no call for one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytriton.client.utils import create_client_from_url
from pytriton.proxy.data import TensorStore
from pytriton.triton import TritonBase

from ingot.errors import DeviceError


def take_out(triton: TritonBase, name: str, timeout_s: float) -> None:
    """Triton answers what it has of this model, and rejects the rest. Nothing happens if there is no such model."""
    manager = triton._model_manager
    key = next((key for key, bound in manager._models.items() if bound.model_name == name), None)
    if key is None:
        return
    if triton.is_connected():
        _unload(manager, name, timeout_s)
    bound = manager._models.pop(key)
    bound.clean()
    for function in bound.infer_functions:  # a reference to the engine
        bound.triton_context.model_configs.pop(function, None)
    # PyTriton finds connections by their path, and the next model of this name has the same one with another key.
    TensorStore._instances.pop(_socket_of(bound).as_posix(), None)


def _unload(manager: Any, name: str, timeout_s: float) -> None:
    """Returns when Triton's process of the model has ended its work: before, another of this name would take over its sockets."""
    socket = _socket_of(next(bound for bound in manager.models if bound.model_name == name))
    with contextlib.closing(create_client_from_url(manager._triton_url)) as client:
        client.unload_model(name, headers=manager._headers)
        _wait_until(lambda: not client.is_model_ready(name, headers=manager._headers), name, timeout_s)
    _wait_until(lambda: not socket.exists(), name, timeout_s)


def _socket_of(bound: Any) -> Path:
    return bound._workspace.path / f"{bound.model_name}-data.sock"


def _wait_until(condition: Callable[[], bool], name: str, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise DeviceError(
                f"Triton did not unload the model '{name}' within {timeout_s:g} s",
                code="INGOT-D360",
                advice="requests of it may still run: try again, or stop the server",
            )
        time.sleep(0.01)
