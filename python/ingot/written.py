# SPDX-License-Identifier: Apache-2.0
"""Which tensors torch lets be written: engines, which write memory past torch, keep to its rules. Works without torch."""

from __future__ import annotations

import sys
from typing import Any

from ingot.errors import UserError


def check_writable(value: Any, what: str) -> None:
    """Of an argument that a call updates in place. UserError INGOT-U338 where an operator of torch would not."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return
    if value.is_inference() and not torch.is_inference_mode_enabled():
        raise UserError(
            f"{what}: the model updates it in place, but it was made in torch.inference_mode(), outside of which nothing may write it",
            code="INGOT-U338",
            advice="call the model in torch.inference_mode() too, or pass a clone",
        )
    is_leaf = value.is_leaf or (value._is_view() and value._base.is_leaf)
    if value.requires_grad and is_leaf and torch.is_grad_enabled():
        raise UserError(
            f"{what}: the model updates it in place, but it is a leaf of autograd that requires gradients, or a view of one",
            code="INGOT-U338",
            advice="call the model in torch.no_grad(), or pass value.detach().clone()",
        )
