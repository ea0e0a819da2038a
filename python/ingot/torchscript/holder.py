# SPDX-License-Identifier: Apache-2.0
"""TorchScript modules as plain modules: the same parameters and buffers under the same names, and a forward that interprets."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import traceback

from ingot.torchscript.interpreter import Interpreter, as_tensor


class Holder(torch.nn.Module):
    """The tensors of one TorchScript module and of its children; everything else is asked of the module itself."""

    def __init__(
        self, script: torch.jit.ScriptModule, known: dict[int, torch.nn.Parameter] | None = None
    ) -> None:
        """known: the parameters so far, by the identity of TorchScript's tensor."""
        super().__init__()
        known = {} if known is None else known
        vars(self)["script"] = script  # not a child
        self.training = getattr(script, "training", False)  # a frozen module has none
        for name, value in script.named_parameters(recurse=False):
            self.register_parameter(name, known.setdefault(id(value), _parameter(value)))
        for name, value in script.named_buffers(recurse=False):
            self.register_buffer(name, value)
        for name, child in script.named_children():
            self.add_module(name, Holder(child, known))
        for name in _attributes_read(self.graphs()):
            value = None if hasattr(self, name) else getattr(script, name, None)
            if isinstance(value, torch.Tensor):
                self.register_buffer(name, value, persistent=False)
            elif isinstance(value, torch._C.ScriptModule):  # freezing hides what it keeps of children
                self.add_module(name, Holder(torch.jit._recursive.wrap_cpp_module(value), known))

    def attribute(self, name: str) -> Any:
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                return held[name]
        return getattr(self.script, name)

    def method(self, name: str) -> torch._C.Graph:
        return self.script._c._get_method(name).graph

    def graphs(self) -> list[torch._C.Graph]:
        return [self.method(name) for name in self.script._c._method_names()]


def _parameter(value: torch.Tensor) -> torch.nn.Parameter:
    """Those of loaded modules are plain tensors."""
    is_parameter = isinstance(value, torch.nn.Parameter)
    return value if is_parameter else torch.nn.Parameter(value.detach(), requires_grad=value.requires_grad)


def _typed(value: Any, kind: torch._C.Type) -> Any:
    """With 0-d tensors for the numbers that a trace has as tensors."""
    if kind.kind() == "TensorType":
        return as_tensor(value)
    if isinstance(value, tuple) and kind.kind() == "TupleType":
        return tuple(map(_typed, value, kind.containedTypes()))
    if isinstance(value, list):
        return [_typed(item, kind.containedTypes()[0]) for item in value]
    return value


def _attributes_read(graphs: list[torch._C.Graph]) -> Iterator[str]:
    """The names of attributes that methods read of their own module."""
    for graph in graphs:
        own = next(graph.inputs()).debugName()
        for node in graph.findAllNodes("prim::GetAttr"):
            if node.input().debugName() == own:
                yield node.s("name")


class ScriptModel(Holder):
    """A whole model, which torch.export traces."""

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__(script)
        graphs = [
            graph for holder in self.modules() if isinstance(holder, Holder) for graph in holder.graphs()
        ]
        self._constants = _keep_constants(self, graphs)
        schema = script._c._get_method("forward").schema
        self.forward = _forward(self, schema.arguments[1:], lambda: (self.method("forward"), [self]))


class ScriptedFunction(torch.nn.Module):
    """A TorchScript function as a module."""

    def __init__(self, function: torch.jit.ScriptFunction) -> None:
        super().__init__()
        self._constants = _keep_constants(self, [function.graph])
        self.forward = _forward(self, function.schema.arguments, lambda: (function.graph, []))


def _keep_constants(module: torch.nn.Module, graphs: list[torch._C.Graph]) -> dict[int, str]:
    """Makes the floating-point constants of the graphs buffers: they are weights, as those that `torch.jit.freeze` turned into
    constants were before. Returns their names by the identity of the constant.
    """
    names: dict[int, str] = {}
    for graph in graphs:
        for node in graph.findAllNodes("prim::Constant"):
            value = None if node.output().type().kind() == "FunctionType" else node.output().toIValue()
            if (
                isinstance(value, torch.Tensor)
                and value.is_floating_point()
                and value.dim()
                and id(value) not in names
            ):
                names[id(value)] = _register(module, node.output().debugName(), value, len(names))
    return names


def _register(module: torch.nn.Module, name: str, value: torch.Tensor, number: int) -> str:
    """Under the name in the frozen module, as far as the graph keeps it."""
    *folders, last = (
        name.removeprefix("self.").split(".") if name.startswith("self.") else [f"constant_{number}"]
    )
    place = module
    for folder in folders:
        if folder not in place._modules:
            place.add_module(folder, torch.nn.Module())
        place = place.get_submodule(folder)
    last = f"constant_{number}" if hasattr(place, last) else last
    place.register_buffer(last, value.detach())
    return ".".join([*folders, last])


def _forward(module: Any, arguments: list, start: Any) -> Any:
    """A forward with the arguments of a schema. `start()`: the graph, and what precedes the arguments."""
    names: list[str] = []
    for each in arguments:  # traces may have two of one name
        names.append(each.name if each.name not in names else f"{each.name}_{len(names)}")
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY if each.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=each.default_value if each.has_default_value() else inspect.Parameter.empty,
            annotation=torch.Tensor if str(each.type) == "Tensor" else inspect.Parameter.empty,
        )
        for name, each in zip(names, arguments, strict=True)
    ]
    signature = inspect.Signature(parameters)

    def forward(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        graph, own = start()
        constants = {identity: module.get_buffer(name) for identity, name in module._constants.items()}
        with traceback.preserve_node_meta():
            result = Interpreter(constants).call(graph, [*own, *bound.arguments.values()], "forward")
        types = [output.type() for output in graph.outputs()]
        return _typed(result, types[0]) if len(types) == 1 else tuple(map(_typed, result, types))

    forward.__signature__ = signature
    return forward
