# SPDX-License-Identifier: Apache-2.0
"""Sizes that an operator requires to be equal, but that torch traced as two symbols."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from ingot.capture import target_name


def unify(module: GraphModule) -> None:
    """Attention has one value per key: torch's tracing does not require it, and a key-value cache has a symbol for each.

    Requires it now, so that torch guards the graph for it and both become one symbol.
    """
    for node in module.graph.nodes:
        if node.op != "call_function" or "scaled_dot_product" not in target_name(node.target):
            continue
        key, value = (getattr(operand, "meta", {}).get("val") for operand in node.args[1:3])
        if (
            isinstance(key, torch.Tensor)
            and isinstance(value, torch.Tensor)
            and min(key.dim(), value.dim()) >= 2
        ):
            bool(key.shape[-2] == value.shape[-2])
