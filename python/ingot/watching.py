# SPDX-License-Identifier: Apache-2.0
"""Where torch keeps what tells that a tensor has changed, for the watching of weights."""

from __future__ import annotations

import functools

import torch

from ingot import _core, compat


@functools.cache
def tensors() -> _core.TorchTensors | None:
    """None if this version of torch keeps it elsewhere: then each look at a weight goes through Python."""
    try:
        with torch.inference_mode(False), torch.no_grad(), compat.with_real_tensors():
            first, second = (torch.zeros(64, device="cpu")[start : start + 9] for start in (11, 23))
            outside = torch.frombuffer(bytearray(64), dtype=torch.uint8)
            return _core.TorchTensors.find(first, second, outside, torch.autograd.graph.increment_version)
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError):
        return None
