# SPDX-License-Identifier: Apache-2.0
"""Weights of linear layers as groups of 4 bits, or as fp8, and the operators that dequantize them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import torch
import torch.ao.quantization.fx._decomposed
from torch.fx import GraphModule, Node

from ingot.quantization.batch_norms import add_constant
from ingot.quantization.sites import Site, attribute

GROUP_SIZES = (32, 64, 128)
FLOAT8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FLOAT8).max

_aten = torch.ops.aten
_group = torch.ops.quantized_decomposed.dequantize_per_channel_group.default
_LOWEST, _HIGHEST, _LEVELS = -8, 7, 15  # of signed integers of 4 bits; steps between unsigned ones


@dataclasses.dataclass(frozen=True)
class Groups:
    """Integers of 4 bits with a scale, and a zero point if not symmetric, per `size` adjacent elements of a row."""

    size: int
    symmetric: bool

    def fits(self, weight: torch.Tensor) -> bool:
        return weight.dim() == 2 and weight.shape[1] % self.size == 0

    def write(self, module: GraphModule, name: str, weight: torch.Tensor) -> Node:
        groups = weight.float().unflatten(1, (-1, self.size))
        scales, zeros, numbers = self._signed(groups) if self.symmetric else self._unsigned(groups)
        low = _LOWEST if self.symmetric else 0
        dtype = torch.int8 if self.symmetric else torch.uint8
        operands = (
            add_constant(module, f"{name}_i4", numbers.flatten(1).to(dtype)),
            add_constant(module, f"{name}_scales", scales.to(weight.dtype)),
            add_constant(module, f"{name}_zero_points", zeros.to(torch.int8)),
        )
        limits = (low, low + _LEVELS, dtype, self.size, weight.dtype)
        return module.graph.call_function(_group, (*operands, *limits))

    def _signed(self, groups: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scales = _positive(groups.abs().amax(-1) / _HIGHEST)
        return (
            scales,
            torch.zeros_like(scales),
            (groups / scales[..., None]).round().clamp(_LOWEST, _HIGHEST),
        )

    def _unsigned(self, groups: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
        scales = _positive((high - low) / _LEVELS)
        zeros = (-low / scales).round().clamp(0, _LEVELS)
        return scales, zeros, ((groups / scales[..., None]).round() + zeros[..., None]).clamp(0, _LEVELS)


@dataclasses.dataclass(frozen=True)
class Float8:
    """e4m3 with a scale per row."""

    def fits(self, weight: torch.Tensor) -> bool:
        return weight.dim() == 2

    def write(self, module: GraphModule, name: str, weight: torch.Tensor) -> Node:
        scales = _positive(weight.float().abs().amax(1, keepdim=True) / LARGEST)
        call = module.graph.call_function
        numbers = add_constant(module, f"{name}_e4m3", (weight.float() / scales).to(FLOAT8))
        wide = call(_aten.to.dtype, (numbers, torch.float32))
        result = call(_aten.mul.Tensor, (wide, add_constant(module, f"{name}_scales", scales)))
        return result if weight.dtype == torch.float32 else call(_aten.to.dtype, (result, weight.dtype))


def _positive(scales: torch.Tensor) -> torch.Tensor:
    return torch.where(scales > 0, scales, 1.0)


def write(module: GraphModule, sites: Sequence[Site], form: Groups | Float8) -> None:
    """Layers that share a weight still do."""
    done: dict[str, Node] = {}
    for site in sites:
        name = str(site.weight.target)
        if name not in done:
            with module.graph.inserting_before(sites[0].node):
                done[name] = form.write(module, name.replace(".", "_"), attribute(module, name).detach())
        site.node.replace_input_with(site.weight, done[name])


def round_value(module: GraphModule, value: Node, readers: Sequence[Node], largest: float) -> None:
    """The readers read the value as e4m3, with one scale: numbers beyond `largest` become that."""
    scale = largest / LARGEST if largest > 0 else 1.0
    steps: list[tuple[Callable, tuple]] = [
        (_aten.mul.Tensor, (1 / scale,)),
        (_aten.clamp.default, (-LARGEST, LARGEST)),
        (_aten.to.dtype, (FLOAT8,)),
        (_aten.to.dtype, (torch.float32,)),
        (_aten.mul.Tensor, (scale,)),
    ]
    node = value
    for function, operands in steps:
        with module.graph.inserting_after(node):
            node = module.graph.call_function(function, (node, *operands))
        node.meta = {key: value.meta[key] for key in ("stack_trace", "nn_module_stack") if key in value.meta}
    for reader in readers:
        reader.replace_input_with(value, node)
