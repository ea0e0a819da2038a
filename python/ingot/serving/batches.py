# SPDX-License-Identifier: Apache-2.0
"""Several requests in one call of the engine, and each request's part of the result."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ingot.engine import Engine
from ingot.errors import Error

Tensors = list[np.ndarray]
Answer = Tensors | Error

# Relative to the value and to the root mean square of the output, by bytes per element: the accuracy rule of two runs of one engine.
_TOLERANCES = {2: (2e-2, 2e-2), 4: (1e-4, 1e-5), 8: (1e-9, 1e-11)}


def key_of(tensors: Tensors) -> tuple:
    """Requests with the same key differ in their numbers of rows alone; those without rows have equal values."""
    return tuple(
        (tensor.dtype.str, tensor.shape[1:] if tensor.ndim else tensor.tobytes()) for tensor in tensors
    )


def shared_values(key: tuple) -> tuple:
    """Those of tensors without rows, in a key of requests."""
    return tuple(part for part in key if isinstance(part[1], bytes))


def run_together(engine: Engine, requests: Sequence[Tensors]) -> list[Answer] | None:
    """One call for requests of the same key; None if it fails: then each runs alone, so that only those at fault fail."""
    try:
        outputs = engine.run([_joined(tensors) for tensors in zip(*requests, strict=True)])
    except Error:
        return None
    ends = list(itertools.accumulate(_rows(request) for request in requests))
    return [
        [output[start:end] for output in outputs] for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]


def _joined(tensors: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(tensors) if tensors[0].ndim else tensors[0]


def _rows(request: Tensors) -> int:
    return next(len(tensor) for tensor in request if tensor.ndim)


def run_alone(engine: Engine, request: Tensors) -> Answer:
    try:
        return engine.run(request)
    except Error as error:
        return error


def are_independent(together: Sequence[Answer], alone: Sequence[Answer]) -> bool:
    """Whether requests got from one call what they get from calls of their own, up to the order of sums."""
    return all(_agree(first, second) for first, second in zip(together, alone, strict=True))


def _agree(first: Answer, second: Answer) -> bool:
    if isinstance(first, Error) or isinstance(second, Error):
        return isinstance(first, Error) and isinstance(second, Error)
    return all(_is_close(value, want) for value, want in zip(first, second, strict=True))


def _is_close(value: np.ndarray, want: np.ndarray) -> bool:
    if value.shape != want.shape:
        return False
    if value.dtype.kind in "biu" or not value.size:
        return bool((value == want).all())
    if value.dtype.kind == "c":
        return _is_close(np.stack([value.real, value.imag]), np.stack([want.real, want.imag]))
    relative, absolute = _TOLERANCES.get(value.dtype.itemsize, (2e-2, 2e-2))
    value, want = value.astype(np.float64), want.astype(np.float64)
    finite = want[np.isfinite(want)]
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    return bool(np.allclose(value, want, relative, absolute * scale, equal_nan=True))
