# SPDX-License-Identifier: Apache-2.0
"""torch.export of models that compute sizes from integers in buffers, which torch takes for unknown numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from ingot.compat import find

_MODULE, _MAKER = "torch.export._trace", "_fakify_params_buffers"


def exported(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any
) -> ExportedProgram:
    """The program of torch.export. Where that fails, integers in buffers have their values while it traces, if no call writes them:
    as all integer tensors they are part of an engine, and a refit rejects others."""
    try:
        return torch.export.export(model, args, dict(kwargs), dynamic_shapes=shapes)
    except Exception as error:
        program = None
        with contextlib.suppress(Exception):
            program = _with_values(model, args, kwargs, shapes)
        if program is None:
            raise error from error.__cause__
        return program


def _with_values(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any
) -> ExportedProgram | None:
    """None: no buffer holds an integer, or calls write one."""
    numbers = {
        name: value for name, value in model.named_buffers(remove_duplicate=False) if _is_integer(value)
    }
    if not numbers:
        return None
    with _known(numbers):
        program = torch.export.export(model, args, dict(kwargs), dynamic_shapes=shapes)
    return None if _writes(program, numbers.keys()) else program


def _writes(program: ExportedProgram, names: Collection[str]) -> bool:
    """Whether something is written into these buffers, or into a single element that is computed from them and may be a view."""
    buffers = program.graph_signature.inputs_to_buffers
    found = {
        node for node in program.graph.nodes if node.op == "placeholder" and buffers.get(node.name) in names
    }
    for node in program.graph.nodes:
        if found.isdisjoint(node.all_input_nodes):
            continue
        if not found.isdisjoint(_written(node)):
            return True
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and all(isinstance(dim, int) and dim == 1 for dim in value.shape):
            found.add(node)
    return bool(names & set(program.graph_signature.buffers_to_mutate.values()))


def _written(node: Node) -> list[Any]:
    schema = getattr(node.target, "_schema", None)
    written = []
    for position, argument in enumerate(schema.arguments if schema else ()):
        if argument.alias_info and argument.alias_info.is_write:
            given = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
            written += tree_leaves(given)
    return written


def _is_integer(value: torch.Tensor) -> bool:
    return value.dim() == 0 and not value.is_floating_point() and not value.is_complex()


@contextlib.contextmanager
def _known(numbers: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """While active, torch knows the values of these buffers."""
    module: Any = find(_MODULE)
    make = getattr(module, _MAKER)

    def make_known(mode: Any, model: torch.nn.Module) -> Any:
        made = make(mode, model)
        for name, value in numbers.items():
            made[name].constant = value.detach().clone()
        return made

    setattr(module, _MAKER, make_known)
    try:
        yield
    finally:
        setattr(module, _MAKER, make)
