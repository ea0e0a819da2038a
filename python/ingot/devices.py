# SPDX-License-Identifier: Apache-2.0
"""Models whose tensors are on a GPU: which device their engines are for, and which of their nodes stay in torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.fx import GraphModule, Node

from ingot import compat
from ingot.capture import Input
from ingot.settings import Settings

_FIRST = torch.device("cuda", 0)  # the GPU that engines run on
_HOST = torch.device("cpu")


def settings_for(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> Settings:
    """`settings` for the GPU of the graph's tensors, unless an option names a device or engines do not support that GPU."""
    if not _has_gpu(module, inputs) or {"device", "backend"} & settings.compiler.keys():
        return settings
    name = architecture()
    return replace(settings, compiler={**settings.compiler, "device": f"cuda:{name}"}) if name else settings


def architecture() -> str:
    """The first GPU's, as the option `device` takes it: "sm_90a"; "" if engines need a later one."""
    major, minor = torch.cuda.get_device_capability(_FIRST)
    return "" if major < 8 else f"sm_{major}{minor}" + ("a" if major == 9 else "")


def like(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> torch.Tensor:
    """An empty tensor on the device where the results of the graph's engines belong."""
    with compat.with_real_tensors():
        return torch.empty(0, device=_FIRST if _has_gpu(module, inputs) and _is_for_gpu(settings) else _HOST)


def refused(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> dict[Node, str]:
    """The nodes of a graph with tensors on a GPU that compute elsewhere than its engines."""
    if not _has_gpu(module, inputs):
        return {}
    own = _FIRST if _is_for_gpu(settings) else _HOST
    reasons = {}
    for node in module.graph.nodes:
        others = [device for device in _devices(node) if device != own]
        if own == _HOST:  # an engine for a GPU fetches what it reads
            others += [device for read in node.all_input_nodes for device in _devices(read) if device != own]
        if node.op == "call_function" and others:
            reasons[node] = f"it computes on {others[0]}, and the engine is for {own}"
    return reasons


def _is_for_gpu(settings: Settings) -> bool:
    return (
        settings.compiler.get("device", "").startswith("cuda") or settings.compiler.get("backend") == "cuda"
    )


def _has_gpu(module: GraphModule, inputs: Sequence[Input]) -> bool:
    tensors = [given.data for given in inputs if isinstance(given.data, torch.Tensor)]
    return any(tensor.is_cuda for tensor in tensors) or any(
        device.type == "cuda" for node in module.graph.nodes for device in _devices(node)
    )


def _devices(node: Node) -> list[torch.device]:
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else [value]
    return [item.device for item in values if isinstance(item, torch.Tensor)]
