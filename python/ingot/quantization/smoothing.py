# SPDX-License-Identifier: Apache-2.0
"""SmoothQuant (Xiao et al., arXiv:2211.10438): channels of activations with outliers are divided by a factor, which goes into the
weights. In exact arithmetic the result is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.fx import GraphModule, Node

from ingot.quantization.batch_norms import add_constant
from ingot.quantization.sites import Site, attribute

_SMALLEST = 1e-5


def layers_of(sites: Sequence[Site]) -> dict[Node, list[Site]]:
    """The linear layers, by the value that they read."""
    found: dict[Node, list[Site]] = {}
    for site in sites:
        if site.node.target is torch.ops.aten.linear.default:
            found.setdefault(site.value, []).append(site)
    return found


def apply(
    module: GraphModule, sites: Sequence[Site], largest: Mapping[str, torch.Tensor], share: float
) -> None:
    """Changes sites and weights. largest: the largest magnitude of each channel, by the name of the value."""
    for value, layers in layers_of(sites).items():
        weights = [attribute(module, str(site.weight.target)).detach() for site in layers]
        of_weights = torch.stack([weight.abs().amax(0) for weight in weights]).amax(0)
        factors = largest[value.name].clamp(min=_SMALLEST) ** share
        factors = (factors / of_weights.clamp(min=_SMALLEST) ** (1 - share)).clamp(min=_SMALLEST)
        with module.graph.inserting_after(value):
            inverse = add_constant(module, f"{value.name}_smoothing", 1 / factors)
        with module.graph.inserting_after(inverse):
            smooth = module.graph.call_function(torch.ops.aten.mul.Tensor, (value, inverse))
        smooth.meta = dict(value.meta)
        for site, weight in zip(layers, weights, strict=True):
            with module.graph.inserting_before(site.node):
                site.weight = add_constant(module, f"{site.node.name}_weight", weight * factors)
            site.node.args = (smooth, site.weight, *site.node.args[2:])
            site.value = smooth
