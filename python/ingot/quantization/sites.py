# SPDX-License-Identifier: Apache-2.0
"""Which contractions of an exported program are quantized, and which values they read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import torch
from torch.fx import GraphModule, Node

from ingot.errors import UserError

_aten = torch.ops.aten
CONVOLUTIONS = (_aten.conv1d.default, _aten.conv2d.default, _aten.conv3d.default)
TRANSPOSED_CONVOLUTIONS = (
    _aten.conv_transpose1d.default,
    _aten.conv_transpose2d.input,
    _aten.conv_transpose3d.input,
)
CONTRACTIONS = (*CONVOLUTIONS, *TRANSPOSED_CONVOLUTIONS, _aten.linear.default)
_HALVES = (torch.bfloat16, torch.float16)
_ADDITIONS = (_aten.add.Tensor, _aten.add_.Tensor)


@dataclasses.dataclass
class Site:
    """A convolution or linear layer with a parameter as its weight."""

    node: Node
    value: Node
    weight: Node  # get_attr

    @property
    def channel_axis(self) -> int:
        """The dim of the weight that is the result's channels."""
        return 1 if self.node.target in TRANSPOSED_CONVOLUTIONS else 0


def attribute(module: GraphModule, name: str) -> torch.Tensor:
    owner, _, last = name.rpartition(".")
    return getattr(module.get_submodule(owner), last)


def find(
    module: GraphModule,
    kept: Sequence[str],
    fits: Callable[[torch.Tensor], bool] | None = None,
    halves: bool = False,
) -> list[Site]:
    """In the order of the program. UserError for a pattern of `kept` that names no contraction, and if none is left.

    fits: whether a linear layer's weight is quantized; convolutions are not. halves: weights may be bf16 and f16 too.
    """
    contractions = [node for node in module.graph.nodes if node.target in CONTRACTIONS]
    for pattern in kept:
        if not any(fnmatchcase(node.name, pattern) for node in contractions):
            names = ", ".join(node.name for node in contractions[:8])
            raise UserError(
                f'keep_precision names "{pattern}", but no convolution or linear layer is called so',
                code="INGOT-U025",
                advice=f"the first ones are {names}; * and ? stand for any letters",
            )
    rest = [node for node in contractions if not any(fnmatchcase(node.name, each) for each in kept)]
    sites = [
        Site(node, node.args[0], node.args[1]) for node in rest if _is_quantizable(module, node, fits, halves)
    ]
    if not sites:
        _refuse_halves(module, rest, fits, halves)
        raise UserError(
            "there is nothing to quantize: no convolution or linear layer of f32 with a constant weight is left"
            if fits is None
            else "there is nothing to quantize: no linear layer with a constant weight of fitting size is left",
            code="INGOT-U025",
        )
    return sites


def _refuse_halves(
    module: GraphModule,
    contractions: Sequence[Node],
    fits: Callable[[torch.Tensor], bool] | None,
    halves: bool,
) -> None:
    """Says that the dtype is what stands in the way."""
    if halves or not any(_is_quantizable(module, node, fits, halves=True) for node in contractions):
        return
    raise UserError(
        "there is nothing to quantize: activations are quantized in layers of f32, and the layers here are bf16 or f16",
        code="INGOT-U025",
        advice='give model.float(), or weights alone: activations="none"',
    )


def _is_quantizable(
    module: GraphModule, node: Node, fits: Callable[[torch.Tensor], bool] | None, halves: bool
) -> bool:
    value, weight = node.args[:2]
    if not isinstance(value, Node) or not isinstance(weight, Node) or weight.op != "get_attr":
        return False
    tensor = attribute(module, str(weight.target))
    if tensor.dim() < 2 or tensor.numel() == 0:  # a vector has no rows with scales
        return False
    if node.target in TRANSPOSED_CONVOLUTIONS and not _has_separate_windows(node, tensor):
        return False
    suits = fits is None or (node.target == _aten.linear.default and fits(tensor))
    return suits and (tensor.dtype == torch.float32 or (halves and tensor.dtype in _HALVES))


def _has_separate_windows(node: Node, weight: torch.Tensor) -> bool:
    """Whether a transposed convolution adds up no windows: those that do stay f32 in engines."""
    defaults = (None, None, None, 1, 0, 0, 1, 1)
    _, _, _, stride, padding, output_padding, groups, dilation = (*node.args, *defaults[len(node.args) :])

    def are_all(sizes: object, value: int) -> bool:
        return all(size == value for size in (sizes if isinstance(sizes, (list, tuple)) else [sizes]))

    window = list(weight.shape[2:])
    strides = list(stride) if isinstance(stride, (list, tuple)) else [stride]
    strides = strides * len(window) if len(strides) == 1 else strides
    return (
        strides == window
        and groups == 1
        and are_all(padding, 0)
        and are_all(output_padding, 0)
        and are_all(dilation, 1)
    )


def readers(sites: Sequence[Site]) -> dict[Node, list[Node]]:
    """For each value that contractions read: the nodes that get the quantized one.

    Additions share it where all the contractions are convolutions: a residual connection is then read from a quarter of the memory.
    The residual stream of transformers is not quantized, as what it adds up would lose precision in each layer.
    """
    found: dict[Node, list[Node]] = {}
    for site in sites:
        found.setdefault(site.value, []).append(site.node)
    for value, nodes in found.items():
        if all(node.target in (*CONVOLUTIONS, *TRANSPOSED_CONVOLUTIONS) for node in nodes):
            nodes += [user for user in value.users if user.target in _ADDITIONS]
    return found
