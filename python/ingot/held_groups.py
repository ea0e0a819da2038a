# SPDX-License-Identifier: Apache-2.0
"""The groups of ranks that a model refers to, before it is traced."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ingot import ranks


def names_in(model: Any) -> list[str] | None:
    """Of a model, or a list of its graph and tensors: by its attributes, the placements of its tensors and its graph; with several, the
    group of all ranks, too. None if it does not show any: a function may have them from anywhere."""
    from torch.distributed import group

    known = {each.group_name: each.group_name for each in ranks.torch_groups()}
    known |= {ranks.alias_of(each): each.group_name for each in ranks.torch_groups()}
    found = sorted({known[name] for value in _values(model) for name in _names(value) if name in known})
    return [*found, *([group.WORLD.group_name] if len(found) > 1 else [])] or None


def _values(model: Any) -> Iterator[Any]:
    import torch
    from torch.utils import _pytree

    for part in model if isinstance(model, list) else [getattr(model, "graph_module", model)]:
        yield part
        for module in part.modules() if isinstance(part, torch.nn.Module) else ():
            yield from _pytree.tree_leaves(vars(module))
            yield from _values_in_graph(module)


def _values_in_graph(module: Any) -> Iterator[Any]:
    from torch.utils import _pytree

    for node in getattr(getattr(module, "graph", None), "nodes", ()):
        yield from _pytree.tree_leaves((node.args, dict(node.kwargs)))


def _names(value: Any) -> Iterable[str]:
    from torch.distributed import DeviceMesh, ProcessGroup
    from torch.distributed.tensor import DTensor

    if isinstance(value, str):
        return [value]
    if isinstance(value, ProcessGroup):
        return [value.group_name]
    mesh = value.device_mesh if isinstance(value, DTensor) else value
    if isinstance(mesh, DeviceMesh):
        return itertools.chain.from_iterable(map(_names, mesh.get_all_groups()))
    return []
