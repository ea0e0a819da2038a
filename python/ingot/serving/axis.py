# SPDX-License-Identifier: Apache-2.0
"""Along which dimension requests become one call, and within which bounds: as the engine's signature declares it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ingot.engine import Engine, Port

MOST_ROWS = 1024  # of a batch, where the engine's own maximum is larger


@dataclass(frozen=True)
class BatchAxis:
    """`symbol` is the first dimension of all inputs and outputs, and no other; calls have `minimum` to `maximum` rows.

    `shared`: inputs without dims, such as integers that calls choose, by position. Requests of one call have equal ones.
    """

    symbol: str
    minimum: int
    maximum: int
    shared: tuple[int, ...] = ()

    def rows(self, tensors: list[np.ndarray]) -> int:
        """Of one request; 0 if it must run alone: its inputs have different numbers of rows, or the engine will reject it."""
        if any(tensors[k].ndim for k in self.shared):
            return 0
        own = [tensor for k, tensor in enumerate(tensors) if k not in self.shared]
        counts = {tensor.shape[0] if tensor.ndim else 0 for tensor in own}
        count = counts.pop()
        return count if not counts and self.minimum <= count <= self.maximum else 0


def find_axis(engine: Engine, largest: int | None = None) -> BatchAxis | str:
    """The reason, if requests run one by one. largest: rows per batch; by default as many as the engine accepts, up to MOST_ROWS."""
    if engine._core.states():
        return "the engine has state: its calls depend on their order"
    if not engine.inputs or not engine.outputs:
        return "the engine has no inputs, or no outputs"
    own = [port for port in engine.inputs if port.shape]
    if not own:
        return "no input has dimensions"
    first = own[0]
    symbol = first.shape[0]
    if not isinstance(symbol, str) or not symbol.isidentifier():
        return f"the first dimension of input '{first.name}' is not dynamic"
    for kind, ports in (("input", own), ("output", engine.outputs)):
        for port in ports:
            if not _has_rows(port, symbol):
                return f"{kind} '{port.name}' has shape {list(port.shape)}: its rows are not those of input '{first.name}'"
    minimum, maximum = first.ranges[0]
    maximum = min(maximum, MOST_ROWS if largest is None else largest)
    if maximum < 2 * minimum:
        return f"a call has {minimum} to {maximum} rows, so that no two requests fit into one"
    shared = tuple(k for k, port in enumerate(engine.inputs) if not port.shape)
    return BatchAxis(symbol, minimum, maximum, shared)


def _has_rows(port: Port, symbol: str) -> bool:
    """The first dimension is the symbol, and no other depends on it."""
    others = [dim for dim in port.shape[1:] if isinstance(dim, str)]
    is_free = all(dim.isidentifier() and dim != symbol for dim in others)
    return bool(port.shape) and port.shape[0] == symbol and is_free
