# SPDX-License-Identifier: Apache-2.0
"""An engine inside of a program that torch runs in part."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ingot._ctypes.arrays import is_torch
from ingot._ctypes.engine import Engine
from ingot._ctypes.without_compiler import fail_without_compiler


class TorchTensors:
    """Where torch keeps what tells a changed weight: nothing is watched here."""

    @staticmethod
    def find(first: Any, second: Any, outside: Any, increment: Any) -> TorchTensors | None:
        return None


class Runner:
    """Called with all arguments of the part; returns the outputs as arrays of the framework of `like`."""

    def __init__(
        self,
        engine: Engine,
        inputs: Sequence[int],
        weights: Sequence[tuple],
        like: Any,
        check_weights: str = "fast",
        tensors: TorchTensors | None = None,
        contents: Any = None,
    ) -> None:
        """inputs: positions of the engine's tensor inputs among the arguments. weights: none; only programs that were compiled
        in this process have weights to watch.
        """
        if weights:
            fail_without_compiler()
        self._engine = engine
        self._inputs = list(inputs)
        self._as_torch = is_torch(like)

    def __deepcopy__(self, memo: dict[int, Any]) -> Runner:
        twin = copy.copy(self)
        twin._engine = copy.deepcopy(self._engine, memo)
        return twin

    def __call__(self, arguments: Sequence[Any]) -> list:
        return self._engine.run_as([arguments[position] for position in self._inputs], self._as_torch)
