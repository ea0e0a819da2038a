# SPDX-License-Identifier: Apache-2.0
"""Complex tensors at the boundary of a graph: engines take and return pairs of reals, which torch views as complex."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch.fx import GraphModule, Node

from ingot.capture import Input
from ingot.kinds import InputRole

_ADDED = "ingot_pair"  # in the meta of nodes that are not the model's
_KINDS = (torch.complex64, torch.complex128)
_aten = torch.ops.aten


def is_added(node: Node) -> bool:
    """Whether `split_at_boundary` added the node."""
    return _ADDED in node.meta


def split_at_boundary(module: GraphModule, inputs: Sequence[Input], mutated: Collection[str | None]) -> None:
    """Makes each complex input and result a pair of reals between the caller and the model.

        z -> resolve_conj -> view_as_real -> [view_as_complex -> ... -> view_as_real] -> view_as_complex -> result

    The nodes in brackets can be in an engine. `mutated`: inputs that the graph changes, which are not constants.
    """
    given = [
        node
        for node, what in zip(module.graph.find_nodes(op="placeholder"), inputs, strict=True)
        if _is_complex(node) and (what.kind == InputRole.USER or what.name in mutated) and _readers(node)
    ]
    output = next(node for node in module.graph.nodes if node.op == "output")
    results = [
        value
        for value in dict.fromkeys(output.args[0])
        if isinstance(value, Node)
        and _is_complex(value)
        and value.op != "placeholder"
        and not is_added(value)
    ]
    _split_inputs(module, given)
    _split_results(module, results, output)
    module.recompile()


def _is_complex(node: Node) -> bool:
    example = node.meta.get("val")
    return isinstance(example, torch.Tensor) and example.dtype in _KINDS and example.layout is torch.strided


def _readers(given: Node) -> list[Node]:
    return [user for user in given.users if not is_added(user) and user.op != "output"]


def _split_inputs(module: GraphModule, given: Sequence[Node]) -> None:
    """First what torch runs for all of them, then what can be in an engine: else one engine would be cut into several."""
    readers = {node: _readers(node) for node in given}
    first = next(node for node in module.graph.nodes if node.op != "placeholder")
    with module.graph.inserting_before(first):
        pairs = {node: _pair_of(module, node) for node in given}
        for node, pair in pairs.items():
            inner = _call(module, _aten.view_as_complex.default, pair)
            for reader in readers[node]:
                reader.replace_input_with(node, inner)


def _split_results(module: GraphModule, results: Sequence[Node], output: Node) -> None:
    with module.graph.inserting_before(output):
        pairs = {value: _pair_of(module, value) for value in results}
        for value, pair in pairs.items():
            output.replace_input_with(value, _call(module, _aten.view_as_complex.default, pair))


def _pair_of(module: GraphModule, value: Node) -> Node:
    plain = _call(module, _aten.resolve_conj.default, value)
    return _call(module, _aten.view_as_real.default, plain)


def _call(module: GraphModule, target: torch._ops.OpOverload, operand: Node) -> Node:
    """A call whose example value follows from its operand's."""
    node = module.graph.call_function(target, (operand,))
    source = {key: operand.meta[key] for key in ("stack_trace", "nn_module_stack") if key in operand.meta}
    example = operand.meta["val"]
    if target is _aten.view_as_complex.default:  # a fake tensor may have strides that a view cannot have
        example = example.contiguous()
    node.meta = {**source, "val": target(example), _ADDED: True}
    return node
