# SPDX-License-Identifier: Apache-2.0
"""Models whose tensors are on a GPU: which device their engines are for, and which of their nodes stay in torch."""

from __future__ import annotations

from collections.abc import KeysView, Sequence
from dataclasses import replace

import torch
from torch.fx import GraphModule, Node

from ingot import compat, gpus, host_values
from ingot.capture import Input
from ingot.kinds import InputRole
from ingot.settings import Settings

_HOST = torch.device("cpu")


def settings_for(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> Settings:
    """`settings` for the GPU of the graph's tensors, unless an option names a device or engines do not support that GPU.

    Engines for GPUs of a graph on the host run on torch's current one.
    """
    gpu = _gpu_of(module, inputs)
    compiler = dict(settings.compiler)
    if gpu is not None and not {"device", "backend"} & compiler.keys():
        name = architecture(gpu.index)
        if not name:
            return settings
        compiler["device"] = f"cuda:{name}"
    if _is_for_gpu(compiler):
        compiler.setdefault("gpu", str(gpus.current() if gpu is None else gpu.index))
    return settings if compiler == settings.compiler else replace(settings, compiler=compiler)


def architecture(gpu: int = 0) -> str:
    """Of a GPU, as the option `device` takes it: "sm_90a"; "" if engines need a later one, or there is none."""
    if gpu >= torch.cuda.device_count():
        return ""
    major, minor = torch.cuda.get_device_capability(gpu)
    return "" if major < 8 else f"sm_{major}{minor}" + ("a" if major == 9 else "")


def like(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> torch.Tensor:
    """An empty tensor on the device where the results of the graph's engines belong."""
    with compat.with_real_tensors():
        return torch.empty(0, device=_device_of(settings) if _gpu_of(module, inputs) is not None else _HOST)


def compute_on_gpu(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> None:
    """Changes what a graph on a GPU computes on the host though nothing asks for that."""
    own = _device_of(settings)
    if own != _HOST and _gpu_of(module, inputs) is not None:
        placeholders = (node for node in module.graph.nodes if node.op == "placeholder")
        pairs = zip(placeholders, inputs, strict=True)
        host_values.move(
            module.graph, own, {node for node, given in pairs if given.kind == InputRole.CONSTANT}
        )
        module.recompile()


def refused(module: GraphModule, inputs: Sequence[Input], settings: Settings) -> dict[Node, str]:
    """The nodes of a graph that compute elsewhere than its engines: on another device, or nowhere ("meta")."""
    if _found(module, inputs) <= {_HOST}:
        return {}
    own = _device_of(settings)
    fetched = {_HOST, own} if own != _HOST else {own}  # an engine for a GPU fetches what it reads on the host
    reasons = {}
    for node in module.graph.nodes:
        others = [device for device in _devices(node) if device != own]
        read = [device for each in node.all_input_nodes for device in _devices(each)]
        others += [device for device in read if device not in fetched]
        if node.op == "call_function" and others:
            reasons[node] = f"it computes on {others[0]}, and the engine is for {own}"
    return reasons


def _is_for_gpu(compiler: dict[str, str]) -> bool:
    return compiler.get("device", "").startswith("cuda") or compiler.get("backend") == "cuda"


def _device_of(settings: Settings) -> torch.device:
    is_for_gpu = _is_for_gpu(settings.compiler)
    return torch.device("cuda", int(settings.compiler.get("gpu", "0"))) if is_for_gpu else _HOST


def _gpu_of(module: GraphModule, inputs: Sequence[Input]) -> torch.device | None:
    """The GPU of the graph's first tensor that is on one."""
    return next((device for device in _found(module, inputs) if device.type == "cuda"), None)


def _found(module: GraphModule, inputs: Sequence[Input]) -> KeysView[torch.device]:
    """The devices of the graph's tensors, in order of occurrence."""
    given = (each.data.device for each in inputs if isinstance(each.data, torch.Tensor))
    return dict.fromkeys(
        [*given, *(device for node in module.graph.nodes for device in _devices(node))]
    ).keys()


def _devices(node: Node) -> list[torch.device]:
    return [each.device for each in host_values.tensors_of(node)]
