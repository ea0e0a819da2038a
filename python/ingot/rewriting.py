# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export in a form that Ingot imports: only the nodes that need it are decomposed.

torch's `run_decompositions` retraces a whole program, node by node, which takes many times as long as a build.
"""

from __future__ import annotations

import copy
import logging
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils import _pytree

from ingot import compat, composites
from ingot.capture import decompositions, is_imported, is_known, may_share
from ingot.views import viewed_by

_log = logging.getLogger("ingot")


class _CannotError(Exception):
    """A node for which the whole program has to be retraced."""


def rewritten(program: ExportedProgram) -> GraphModule | None:
    """A copy of the program's graph with what Ingot lacks decomposed, and without writes in place; None if only torch can do that.

    Inputs and outputs stay what they are.
    """
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    if any(_writes(node) for node in calls) and any(may_share(node.target) for node in calls):
        _log.info("the whole program is decomposed: it writes, and may write into what an operator returned")
        return None
    if compat.is_in_autocast():
        _log.info("the whole program is decomposed: torch.autocast chooses the dtypes of its calls")
        return None
    if any(map(_was_narrowed, calls)):
        _log.warning(
            "the program was exported inside of torch.autocast, which is not part of it: it is compiled as torch runs it "
            "outside. Call compile inside of torch.autocast too, or put the region into the model's forward"
        )
        return None
    needy = [node for node in calls if _needs_change(node)]
    graph, nodes = _copy_of(program.graph)
    try:
        if needy:
            with torch.no_grad(), composites.keep_composites(is_imported):
                for node in needy:
                    _change(graph, nodes[node])
    except _CannotError as error:
        _log.info("the whole program is decomposed: %s", error)
        return None
    return GraphModule(program.graph_module, graph)


def _copy_of(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    twin, nodes = Graph(), {}
    output = twin.graph_copy(graph, nodes, return_output_node=True)
    original = next(node for node in graph.nodes if node.op == "output")
    nodes[original] = twin.output(output[0])
    nodes[original].meta = copy.copy(original.meta)
    for node, own in nodes.items():
        own.name = node.name  # a copy renames what collides with Python's names: `input`
    return twin, nodes


def with_selects(program: ExportedProgram) -> ExportedProgram:
    """The program with `select` for each result of `unbind`: torch 2.13 retraces writes into those for the example's sizes alone."""
    if all(node.target is not torch.ops.aten.unbind.int for node in program.graph.nodes):
        return program
    graph, _ = _copy_of(program.graph)
    for node in [node for node in graph.nodes if node.target is torch.ops.aten.unbind.int]:
        tensor, dim = node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        for item in list(node.users):
            if item.target is operator.getitem:
                item.target, item.args = torch.ops.aten.select.int, (tensor, dim, item.args[1])
        if not node.users:
            graph.erase_node(node)
    return _with_graph(program, graph)


def with_expanded_sources(program: ExportedProgram) -> ExportedProgram:
    """The program with `expand_as` for what `copy_` broadcasts: torch 2.13 retraces it in the shape that it had before."""
    if not any(map(_broadcasts, program.graph.nodes)):
        return program
    graph, _ = _copy_of(program.graph)
    for node in filter(_broadcasts, list(graph.nodes)):
        target, source = node.args[:2]
        with graph.inserting_before(node):
            expanded = graph.call_function(torch.ops.aten.expand_as.default, (source, target))
        expanded.meta = {**source.meta, "val": target.meta["val"]}
        node.replace_input_with(source, expanded)
    return _with_graph(program, graph)


def _broadcasts(node: Node) -> bool:
    if node.target is not torch.ops.aten.copy_.default:
        return False
    target, source = (_optional_value(each) for each in node.args[:2])
    if not isinstance(target, torch.Tensor) or not isinstance(source, torch.Tensor):
        return False
    return [*map(str, target.shape)] != [*map(str, source.shape)]


def _with_graph(program: ExportedProgram, graph: Graph) -> ExportedProgram:
    twin = copy.copy(program)
    twin._graph_module = GraphModule(program.graph_module, graph)
    twin._graph_module.meta.update(program.graph_module.meta)
    return twin


def _was_narrowed(node: Node) -> bool:
    """Whether torch.autocast chose the dtype that was recorded: the call has another one without it."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target in _CONVERSIONS:
        return False
    result = _optional_value(node)
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        return False
    given = {each.dtype for each in _tensors([_optional_value(each) for each in node.all_input_nodes])}
    if not any(dtype.is_floating_point for dtype in given) or given == {result.dtype}:
        return False
    try:
        with compat.without_autocast():
            return _result_of(node).dtype != result.dtype
    except _CannotError:
        return False


_CONVERSIONS = frozenset({
    torch.ops.aten.to.dtype, torch.ops.aten.to.dtype_layout, torch.ops.aten.to.device, torch.ops.aten.to.other,
    torch.ops.aten._to_copy.default, torch.ops.aten.type_as.default,
})  # fmt: skip


def _writes(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _needs_change(node: Node) -> bool:
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return _is_functorch(node)  # others are arithmetic on sizes, and the choice of one of several results
    return _writes(node) or not is_known(node.target) or composites.must_decompose(node)


def _is_functorch(node: Node) -> bool:
    """The calls with which torch.export keeps a torch.vmap: what they mean, only a trace knows."""
    return str(getattr(node.target, "__module__", "")).startswith("torch._functorch")


def _change(graph: Graph, node: Node) -> None:
    if not isinstance(node.target, torch._ops.OpOverload):
        what = "is part of a torch.vmap" if _is_functorch(node) else "has nested graphs"
        raise _CannotError(f"{node.name} {what}")
    if _writes(node):
        node = _without_write(graph, node)
    if not is_known(node.target) or composites.must_decompose(node):
        _expand(graph, node)


# ---- writes in place ----
def _without_write(graph: Graph, node: Node) -> Node:
    """`add_(x, y)` as `add(x, y)`, if no other tensor shares the memory of x afterwards."""
    functional = _functional_variant(node.target)
    written = node.args[0] if node.args else None
    if functional is None or not isinstance(written, Node):
        raise _CannotError(f"{node.name} writes in place")
    before, after = _value(written), _value(node)
    same = before.dtype == after.dtype and list(map(str, before.shape)) == list(map(str, after.shape))
    if not same or not _is_dense(before) or not _is_only_reader(written, node):
        raise _CannotError(f"{node.name} writes into memory that other nodes may share")
    with graph.inserting_before(node):
        twin = graph.call_function(functional, node.args, node.kwargs)
    twin.meta = copy.copy(node.meta)
    if _result_of(twin).dtype != before.dtype:
        raise _CannotError(f"{node.name} converts what it writes")
    node.replace_all_uses_with(twin)
    later = set(_nodes_after(twin))
    written.replace_all_uses_with(twin, delete_user_cb=lambda user: user in later)
    graph.erase_node(node)
    return twin


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether it is known to be: data-dependent sizes leave it open."""
    try:
        with compat.without_guards(_fake_mode([tensor]).shape_env):
            return tensor.is_contiguous()
    except torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode:
        return False


def _functional_variant(write: Any) -> Any:
    """aten.add.Tensor for aten.add_.Tensor, None if there is none."""
    schema = write._schema
    writes = [
        argument for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write
    ]
    namespace, name = schema.name.split("::")
    if len(writes) != 1 or (
        writes[0] is not schema.arguments[0] and writes[0].name != schema.arguments[0].name
    ):
        return None
    if not name.endswith("_") or len(schema.returns) != 1:
        return None
    packet = getattr(getattr(torch.ops, namespace), name[:-1], None)
    found = getattr(packet, write._overloadname, None) if name.endswith("_") else None
    names = [argument.name for argument in schema.arguments]
    if found is None or [argument.name for argument in found._schema.arguments] != names:
        return None
    return found


def _is_only_reader(written: Node, write: Node) -> bool:
    """Whether, of all values in the memory of `written`, only itself is read after `write`."""
    later = set(_nodes_after(write))
    shown, inner = written, write  # `inner` shares the memory of `shown`
    while True:
        users = [user for user in shown.users if user is not inner]
        aliases = [user for user in users if user not in later and not _is_fresh(user)]
        is_read_later = shown is not written and any(user in later for user in users)
        if aliases or is_read_later:
            return False
        if _is_fresh(shown):
            return True
        base = viewed_by(shown)
        if base is None:
            return False
        shown, inner = base, shown


def _is_fresh(node: Node) -> bool:
    """Whether the result has memory of its own."""
    if node.op == "output":
        return True
    if node.op != "call_function":
        return False
    value = _optional_value(node)
    if value is not None and not _tensors(value):
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return value is None
    schema = node.target._schema
    if schema.is_mutable or any(result.alias_info is not None for result in schema.returns):
        return False
    if not node.target._can_decompose():
        return True
    # A composite may return its argument, which its schema does not declare (dropout, type_as).
    owned = {_storage(each) for each in _tensors([_optional_value(given) for given in node.all_input_nodes])}
    return all(_storage(each) not in owned for each in _tensors(_result_of(node)))


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in _pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _nodes_after(node: Node) -> Iterator[Node]:
    following = node.next
    while following.op != "root":
        yield following
        following = following.next


# ---- decompositions ----
def _expand(graph: Graph, node: Node) -> None:
    """Replaces a call by torch's decomposition; leaves it, for torch to run, if there is none."""
    traced = _traced(node)
    calls = [each for each in traced.graph.nodes if each.op == "call_function"]
    if [each.target for each in calls] == [node.target]:
        return
    if any(each.op == "get_attr" for each in traced.graph.nodes):
        raise _CannotError(f"the decomposition of {node.name} has constants")
    if any(
        isinstance(each.target, torch._ops.OpOverload) and each.target._schema.is_mutable for each in calls
    ):
        raise _CannotError(f"the decomposition of {node.name} writes in place")
    copied = dict(
        zip(
            [each for each in traced.graph.nodes if each.op == "placeholder"],
            node.all_input_nodes,
            strict=True,
        )
    )
    origin = {key: value for key, value in node.meta.items() if key not in ("val", "tensor_meta")}  # its line
    with graph.inserting_before(node):
        for each in calls:
            copied[each] = graph.node_copy(each, copied.__getitem__)
            copied[each].meta = (
                origin
                | each.meta
                | {key: origin[key] for key in ("stack_trace", "nn_module_stack") if key in origin}
            )
    returned = next(each for each in traced.graph.nodes if each.op == "output").args[0]
    _replace(graph, node, map_arg(returned, copied.__getitem__))


def _replace(graph: Graph, node: Node, result: Any) -> None:
    if isinstance(result, Node):
        node.replace_all_uses_with(result)
    elif isinstance(result, (tuple, list)):
        for user in list(node.users):
            if (
                user.op != "call_function"
                or user.target is not operator.getitem
                or not isinstance(result[user.args[1]], Node)
            ):
                raise _CannotError(f"{user.name} uses all results of {node.name}")
            user.replace_all_uses_with(result[user.args[1]])
            graph.erase_node(user)
    else:
        raise _CannotError(f"{node.name} is a {type(result).__name__}")
    graph.erase_node(node)


def _traced(node: Node) -> GraphModule:
    """The decomposition as a graph whose inputs are `node.all_input_nodes`."""
    inputs = node.all_input_nodes
    values = [_value(each) for each in inputs]

    def call(*given: Any) -> Any:
        found = dict(zip(inputs, given, strict=True))
        args, kwargs = map_arg((node.args, node.kwargs), found.__getitem__)
        return node.target(*args, **kwargs)

    before = compat.guards_seen(values)
    try:
        mode = _fake_mode(values)
        with mode, compat.without_unbound_symbols(mode.shape_env):
            traced = make_fx(call, decomposition_table=decompositions())(*values)
    except Exception as error:
        raise _CannotError(f"{node.name} cannot be traced by itself: {error}") from error
    if compat.guards_seen(values) != before:
        raise _CannotError(f"the decomposition of {node.name} is for some sizes only")
    return traced


def _fake_mode(values: list[Any]) -> Any:
    mode = torch._guards.detect_fake_mode(values)
    if mode is None:
        raise _CannotError("there are no example values to trace with")
    return mode


def _result_of(node: Node) -> Any:
    """Runs the node's call on fake tensors again, which leaves the program's sizes as they are."""
    found = {each: _value(each) for each in node.all_input_nodes}
    args, kwargs = map_arg((node.args, node.kwargs), found.__getitem__)
    mode = _fake_mode(list(found.values()))
    try:
        environment = mode.shape_env
        with mode, compat.without_guards(environment), compat.without_unbound_symbols(environment):
            return node.target(*args, **kwargs)
    except _CannotError:
        raise
    except Exception as error:
        raise _CannotError(f"{node.name} cannot be run by itself: {error}") from error


def _optional_value(node: Node) -> Any:
    return node.meta.get("val")


def _value(node: Node) -> Any:
    value = node.meta.get("val")
    if value is None:
        raise _CannotError(f"there is no example value of {node.name}")
    return value
