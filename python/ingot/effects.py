# SPDX-License-Identifier: Apache-2.0
"""Tokens, by which torch keeps calls with side effects in order: not needed where calls stay in the order of the graph."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Node

from ingot.capture import target_name

_WRAPPER = "higher_order.with_effects"


def take_tokens(module: GraphModule) -> int:
    """Replaces calls that take and return a token by the calls themselves; returns how many inputs were tokens.

    These are the first inputs, and as many first outputs, which the graph no longer has. A graph with a wrapped call that is not of
    an ATen operator is left as it is.
    """
    wrappers = [node for node in module.graph.nodes if target_name(node.target) == _WRAPPER]
    if not wrappers or not all(_is_plain(node) for node in wrappers):
        return 0
    count = len({token for token in map(_token_of, wrappers) if token.op == "placeholder"})
    for node in wrappers:
        _unwrap(module, node)
    output = next(node for node in module.graph.nodes if node.op == "output")
    output.args = (tuple(output.args[0])[count:],)
    for token in [node for node in module.graph.nodes if node.op == "placeholder"][:count]:
        module.graph.erase_node(token)
    module.recompile()
    return count


def without_tokens(program: ExportedProgram) -> ExportedProgram | None:
    """A program without tokens among its inputs and outputs; None if a wrapped call is not of an ATen operator."""
    signature = program.graph_signature
    inputs = [spec for spec in signature.input_specs if spec.kind is not InputKind.TOKEN]
    if len(inputs) == len(signature.input_specs):
        return program
    if take_tokens(program.graph_module) == 0:
        return None
    signature.input_specs[:] = inputs
    signature.output_specs[:] = [spec for spec in signature.output_specs if spec.kind is not OutputKind.TOKEN]
    return program


def _token_of(wrapper: Node) -> Node:
    token = wrapper.args[0]
    assert isinstance(token, Node)
    return token


def _is_plain(wrapper: Node) -> bool:
    call = wrapper.args[1]
    is_single = isinstance(call, torch._ops.OpOverload) and len(call._schema.returns) <= 1
    return is_single and all(user.target is operator.getitem for user in wrapper.users)


def _unwrap(module: GraphModule, wrapper: Node) -> None:
    call: Any = wrapper.args[1]
    with module.graph.inserting_before(wrapper):
        plain = module.graph.call_function(call, wrapper.args[2:], wrapper.kwargs)
    plain.meta = {**wrapper.meta, "val": wrapper.meta["val"][1]}
    for user in list(wrapper.users):
        user.replace_all_uses_with(_token_of(wrapper) if user.args[1] == 0 else plain)
        module.graph.erase_node(user)
    module.graph.erase_node(wrapper)
