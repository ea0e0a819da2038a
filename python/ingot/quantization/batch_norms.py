# SPDX-License-Identifier: Apache-2.0
"""Batch norms behind convolutions become part of their weights, before these are quantized."""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node
from torch.nn.utils.fusion import fuse_conv_bn_weights

from ingot.quantization.sites import CONVOLUTIONS, attribute

_BATCH_NORM = torch.ops.aten.batch_norm.default


def fold(module: GraphModule) -> None:
    for norm in [node for node in module.graph.nodes if node.target is _BATCH_NORM]:
        convolution = norm.args[0]
        if convolution.target in CONVOLUTIONS and len(convolution.users) == 1 and not norm.args[5]:
            _fold_one(module, convolution, norm)


def _fold_one(module: GraphModule, convolution: Node, norm: Node) -> None:
    def tensor(node: object) -> torch.Tensor | None:
        return attribute(module, str(node.target)) if isinstance(node, Node) else None

    operands = [convolution.args[1], *convolution.args[2:3], *norm.args[1:5]]
    if any(isinstance(node, Node) and node.op != "get_attr" for node in operands):
        return
    scale, shift, mean, variance = (tensor(node) for node in norm.args[1:5])
    bias = tensor(convolution.args[2]) if len(convolution.args) > 2 else None
    weight, bias = fuse_conv_bn_weights(
        tensor(convolution.args[1]), bias, mean, variance, norm.args[7], scale, shift
    )
    rest = convolution.args[3:]
    with module.graph.inserting_before(convolution):
        convolution.args = (
            convolution.args[0],
            add_constant(module, f"{convolution.name}_weight", weight),
            add_constant(module, f"{convolution.name}_bias", bias),
            *rest,
        )
    norm.replace_all_uses_with(convolution)
    module.graph.erase_node(norm)


def add_constant(module: GraphModule, name: str, tensor: torch.Tensor) -> Node:
    """A buffer of the module, and the node that reads it, at the graph's insertion point."""
    while hasattr(module, name):
        name += "_"
    module.register_buffer(name, tensor.detach())
    return module.graph.get_attr(name)
