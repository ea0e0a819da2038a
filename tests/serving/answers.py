# SPDX-License-Identifier: Apache-2.0
"""Requests and expected answers, as scripts in the servers' environments read them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Answers:
    def __init__(self, path: Path = Path("requests.npz")) -> None:
        with np.load(path) as arrays:
            self._arrays = dict(arrays)
        self.count = 1 + max(int(name.split(".")[0]) for name in self._arrays)

    def request(self, number: int) -> dict[str, np.ndarray]:
        return self._of(number, "input")

    def check(self, number: int, answer: dict[str, np.ndarray], model: str = "scorer") -> None:
        assert self.is_of(number, answer, model), (number, answer)

    def is_of(self, number: int, answer: dict[str, np.ndarray], model: str) -> bool:
        want = self._of(number, model)
        assert set(answer) == set(want)
        return all(
            answer[name].shape == value.shape and np.allclose(answer[name], value, rtol=1e-4, atol=1e-5)
            for name, value in want.items()
        )

    def _of(self, number: int, kind: str) -> dict[str, np.ndarray]:
        prefix = f"{number}.{kind}."
        return {
            name.removeprefix(prefix): value
            for name, value in self._arrays.items()
            if name.startswith(prefix)
        }


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(what: str, condition: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {seconds} s")


def error_of(kind: type[Exception], call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """None if it succeeds."""
    try:
        call(*arguments, **options)
    except kind as error:
        return error
    return None
