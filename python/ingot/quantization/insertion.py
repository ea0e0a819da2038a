# SPDX-License-Identifier: Apache-2.0
"""Writes the quantize and dequantize operators of PT2E (torch.ops.quantized_decomposed) into a program."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.ao.quantization.fx._decomposed
from torch.fx import GraphModule, Node

from ingot.quantization.batch_norms import add_constant
from ingot.quantization.sites import Site, attribute

_ops = torch.ops.quantized_decomposed
_MOST = 127  # weights are symmetric: -128 is not used


def quantize_value(
    module: GraphModule, value: Node, readers: Sequence[Node], scale: float, zero_point: int
) -> None:
    """The readers read the value rounded to u8."""
    how = (scale, zero_point, 0, 255, torch.uint8)
    with module.graph.inserting_after(value):
        numbers = module.graph.call_function(_ops.quantize_per_tensor.default, (value, *how))
    with module.graph.inserting_after(numbers):
        rounded = module.graph.call_function(_ops.dequantize_per_tensor.default, (numbers, *how))
    for node in (numbers, rounded):
        node.meta = {key: value.meta[key] for key in ("stack_trace", "nn_module_stack") if key in value.meta}
    for reader in readers:
        reader.replace_input_with(value, rounded)


def quantize_weights(module: GraphModule, sites: Sequence[Site], per_channel: bool) -> None:
    """Each weight becomes a buffer of i8 and its scales; layers that share one still do."""
    done: dict[tuple[str, int], Node] = {}
    for site in sites:
        key = str(site.weight.target), site.channel_axis
        if key not in done:
            with module.graph.inserting_before(sites[0].node):
                done[key] = _quantized_weight(module, *key, per_channel)
        site.node.replace_input_with(site.weight, done[key])


def _quantized_weight(module: GraphModule, name: str, axis: int, per_channel: bool) -> Node:
    weight = attribute(module, name).detach()
    channels = weight.shape[axis]
    rows = weight.abs().movedim(axis, 0).flatten(1)
    largest = rows.amax(1) if per_channel else rows.max().expand(channels)
    scales = torch.where(largest > 0, largest.float() / _MOST, 1.0)
    along = scales.view([channels if dim == axis else 1 for dim in range(weight.dim())])
    numbers = (weight.float() / along).round().clamp(-_MOST, _MOST)
    short = name.replace(".", "_")
    operands = (
        add_constant(module, f"{short}_i8", numbers.to(torch.int8)),
        add_constant(module, f"{short}_scales", scales.clone()),
        add_constant(module, f"{short}_zero_points", torch.zeros(channels, dtype=torch.int64)),
    )
    result = module.graph.call_function(
        _ops.dequantize_per_channel.default, (*operands, axis, -_MOST, _MOST, torch.int8)
    )
    if weight.dtype == torch.float32:
        return result
    return module.graph.call_function(torch.ops.aten.to.dtype, (result, weight.dtype))


def remove_unused(module: GraphModule) -> None:
    """Weights that nothing reads any more."""
    for node in reversed(module.graph.nodes):
        if node.op == "get_attr" and not node.users:
            module.graph.erase_node(node)
    used = {str(node.target) for node in module.graph.nodes if node.op == "get_attr"}
    for name in [name for name, _ in (*module.named_parameters(), *module.named_buffers())]:
        if name not in used:
            owner, _, last = name.rpartition(".")
            delattr(module.get_submodule(owner), last)
    module.recompile()


def own_parameters(module: GraphModule) -> None:
    """Parameters without gradients in the memory of the model's, which conversions of the module (`to`, `half`) leave as they are."""
    own: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is not None:
                own.setdefault(parameter, torch.nn.Parameter(parameter.detach(), requires_grad=False))
                each._parameters[name] = own[parameter]
