# SPDX-License-Identifier: Apache-2.0
"""Where torch keeps what tells that a tensor has changed, for the watching of weights, and for views of inputs."""

from __future__ import annotations

import functools

import torch

from ingot import _core, compat

_TRIES = 16


@functools.cache
def tensors() -> _core.TorchTensors | None:
    """None if this version of torch keeps it elsewhere: then each look at a weight goes through Python.

    Now and then memory behind an object holds by chance what is looked for, and the search finds two places: it is tried again,
    on other objects, while the first ones live.
    """
    alive: list[tuple[torch.Tensor, ...]] = []
    try:
        with torch.inference_mode(False), torch.no_grad(), compat.with_real_tensors():
            for _ in range(_TRIES):
                first, second = (torch.zeros(64, device="cpu")[start : start + 9] for start in (11, 23))
                outside = torch.frombuffer(bytearray(64), dtype=torch.uint8)
                alive.append((first, second, outside))
                found = _core.TorchTensors.find(
                    first, second, outside, torch.autograd.graph.increment_version
                )
                if found is not None:
                    return found
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError):
        return None
    return None
