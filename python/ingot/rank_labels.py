# SPDX-License-Identifier: Apache-2.0
"""What a program has beside its operators, and ranks agree on for rank="all": names of nodes, and ranges of sizes that vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from ingot import compat
from ingot.capture import LARGEST

Ranges = Mapping[str, Sequence[int | None]]  # symbol -> its least and its largest value; None: without an end


def ranges_of(nodes: Sequence[Node]) -> dict[str, list[int | None]]:
    """Of the sizes of inputs, as far as this rank's trace allows them."""
    return {str(symbol): compat.range_of(environment, symbol) for symbol, environment in _symbols(nodes)}


def range_of(program: torch.export.ExportedProgram, size: int | torch.SymInt) -> tuple[int, int] | None:
    """Of a size that is a symbol."""
    if isinstance(size, int) or not size.node.expr.is_Symbol:
        return None
    low, high = compat.range_of(size.node.shape_env, size.node.expr)
    least = low if low is not None and low > 2 else 0  # torch traces with 2 or more
    return least, LARGEST if high is None else high


def narrow_ranges(nodes: Sequence[Node], shown: Sequence[Ranges]) -> str:
    """What one rank was not traced for, the program is not. The symbol of which no size is left, or ""."""
    for symbol, environment in _symbols(nodes):
        bounds = [own[str(symbol)] for own in shown if str(symbol) in own]
        low = max((low for low, _ in bounds if low is not None), default=None)
        high = min((high for _, high in bounds if high is not None), default=None)
        if low is not None and high is not None and low > high:
            return str(symbol)
        if [low, high] != compat.range_of(environment, symbol):
            compat.set_range(environment, symbol, low, high)
    return ""


def _symbols(nodes: Sequence[Node]) -> list[tuple[Any, Any]]:
    """Each with the environment that knows its range."""
    values = [node.meta.get("val") for node in nodes if node.op == "placeholder"]
    sizes = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    sizes += [value for value in values if isinstance(value, torch.SymInt)]
    found = {
        str(symbol): (symbol, size.node.shape_env)
        for size in sizes
        if isinstance(size, torch.SymInt)
        for symbol in size.node.expr.free_symbols
    }
    return [found[name] for name in sorted(found)]


def rename(names: Mapping[Node, str]) -> None:
    """The nodes of these graphs get these names, and others new ones, the same on all ranks."""
    for graph in dict.fromkeys(node.graph for node in names):
        nodes = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
        fixed = [node for node in graph.nodes if node not in nodes]
        new = (f"of_ranks_{k}" for k in range(len(nodes)))
        compat.name_nodes(
            graph,
            {node: node.name for node in fixed} | {node: names.get(node) or next(new) for node in nodes},
        )
