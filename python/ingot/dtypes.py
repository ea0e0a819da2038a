# SPDX-License-Identifier: Apache-2.0
"""Calls that torch traces but cannot run: torch's shape rules check dtypes less strictly than its kernels (linear, mm, softmax ...).

An export with inputs of a wrong dtype therefore succeeds, and such calls would be left to torch, which refuses them at the first run.
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch.utils import _pytree

from ingot.errors import UserError, first_line
from ingot.graph_dtypes import entered_graphs, refusal_by_graph
from ingot.source import innermost, line_of

_MOST_ELEMENTS = 1 << 24  # of an operand that gets memory, which calls that write into it need


def refuse_dtypes(graph: Graph, inputs: Collection[str], names: Collection[str]) -> None:
    """UserError for the first of these nodes that torch cannot run because of its operands' dtypes. `inputs`: the user's."""
    for node in graph.nodes:
        if node.name in names and _is_suspect(node):
            _refuse_dtypes_of(graph, inputs, node)


def refuse_mixed_dtypes(graph: Graph, inputs: Collection[str], replaced: Callable[[Any], bool]) -> None:
    """The same for calls of these operators on operands of several dtypes, which decompositions would accept."""
    for node in graph.nodes:
        if _is_suspect(node) and replaced(node.target) and len({value.dtype for value in _tensors(node)}) > 1:
            _refuse_dtypes_of(graph, inputs, node)


def _refuse_dtypes_of(graph: Graph, inputs: Collection[str], node: Node) -> None:
    cause = _failure(node, [value.dtype for value in _tensors(node)])
    if cause is not None and any(_failure(node, dtypes) is None for dtypes in _alternatives(node)):
        raise _refusal(graph, inputs, node, cause)


def _is_suspect(node: Node) -> bool:
    """torch's own operators only: the behaviour of others on made-up values is unknown. And on the host only: kernels of GPUs take
    other dtypes, and values that they do not take end the process.
    """
    own = isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "aten"
    tensors = _tensors(node)
    on_host = all(value.device.type == "cpu" for value in tensors)
    return own and on_host and any(value.dtype is not torch.float32 for value in tensors)


def _tensors(node: Node) -> list[torch.Tensor]:
    values = [source.meta.get("val") for source in node.all_input_nodes]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _alternatives(node: Node) -> Iterator[list[torch.dtype]]:
    """Dtypes of the operands that torch might accept instead: f32 for all, for the real ones, and for each alone."""
    dtypes = [value.dtype for value in _tensors(node)]
    yield [torch.float32] * len(dtypes)
    yield [torch.float32 if dtype.is_floating_point else dtype for dtype in dtypes]
    for position in range(len(dtypes)):
        yield [torch.float32 if k == position else dtype for k, dtype in enumerate(dtypes)]


def _failure(node: Node, dtypes: Sequence[torch.dtype]) -> str | None:
    """torch's error for the call on ones of these dtypes, one per tensor operand; None if it runs."""
    tensors = [source for source in node.all_input_nodes if isinstance(source.meta.get("val"), torch.Tensor)]
    dtype_of = dict(zip(tensors, dtypes, strict=True))

    def operand(source: Node) -> Any:
        value = source.meta.get("val")
        if isinstance(value, torch.Tensor):
            sizes = [_hint(size) for size in value.shape]
            if math.prod(sizes) > _MOST_ELEMENTS:
                return torch.ones((), dtype=dtype_of[source]).expand(sizes)  # no memory
            return torch.ones(sizes, dtype=dtype_of[source])
        return _hint(value)

    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            node.target(*map_arg(node.args, operand), **map_arg(node.kwargs, operand))
    except Exception as error:  # whatever a kernel of torch raises
        return first_line(error)
    return None


def _hint(value: Any) -> Any:
    return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value


def _refusal(graph: Graph, users: Collection[str], node: Node, cause: str) -> UserError:
    before, todo = set(), [node]
    while todo:
        for source in todo.pop().all_input_nodes:
            if source not in before:
                before.add(source)
                todo.append(source)
    inputs = [
        (each.name, each.meta["val"].dtype)
        for each in graph.nodes
        if each in before and each.name in users and isinstance(each.meta.get("val"), torch.Tensor)
    ]
    return _wrong_dtypes(inputs, cause, node.name, line_of(node))


def _wrong_dtypes(inputs: Sequence[tuple[str, torch.dtype]], cause: str, node: str, source: str) -> UserError:
    texts = [f"{name} is {str(dtype).removeprefix('torch.')}" for name, dtype in inputs]
    return UserError(
        f"the model cannot run on inputs of these dtypes ({', '.join(texts)}): {cause}",
        code="INGOT-U020",
        node=node,
        source=source,
        advice="pass inputs of the dtypes that the model takes; ingot.Input(shape, dtype=...) says which",
    )


_MOST_INPUTS = 8  # that are tried one by one


def refusal_by_dtypes(model: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> UserError | None:
    """The error about a model that torch could not trace, if it cannot run on inputs of these dtypes, but on ones of others; or if
    a call in one of its graphs fails because of its operands' dtypes.
    """
    leaves, structure = _pytree.tree_flatten((args, kwargs))
    dtypes = [leaf.dtype if isinstance(leaf, torch.Tensor) else None for leaf in leaves]
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        with entered_graphs(model) as entered:
            error = _failure_of_model(model, leaves, structure, dtypes)
        if error is None:
            return None
        others = _other_dtypes(model, dtypes)
        if all(_failure_of_model(model, leaves, structure, other) is not None for other in others):
            return refusal_by_graph(entered)
    bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    inputs = [
        (name, leaf.dtype)
        for name, value in bound.items()
        for leaf in _pytree.tree_leaves(value)
        if isinstance(leaf, torch.Tensor)
    ]
    return _wrong_dtypes(inputs, first_line(error), *_position(model, error))


_Dtypes = Sequence["torch.dtype | None"]


def _other_dtypes(model: torch.nn.Module, dtypes: _Dtypes) -> Iterator[_Dtypes]:
    floats = (value.dtype for value in model.state_dict().values() if value.is_floating_point())
    for other in (next(floats, torch.float32), torch.int64):
        yield [dtype and other for dtype in dtypes]
        yield [other if dtype is not None and dtype.is_floating_point else dtype for dtype in dtypes]
        for position in range(min(len(dtypes), _MOST_INPUTS)):
            yield [dtype and other if k == position else dtype for k, dtype in enumerate(dtypes)]


def _failure_of_model(
    model: torch.nn.Module, leaves: Sequence[Any], structure: _pytree.TreeSpec, dtypes: _Dtypes
) -> Exception | None:
    """What a call raises on tensors without values, in a mode of fake tensors; None if it runs."""
    given = [
        leaf if dtype is None else torch.empty_like(leaf, dtype=dtype)
        for leaf, dtype in zip(leaves, dtypes, strict=True)
    ]
    args, kwargs = _pytree.tree_unflatten(given, structure)
    try:
        model(*args, **kwargs)
    except Exception as error:  # whatever the model or torch raises
        return error
    return None


def _position(model: torch.nn.Module, error: Exception) -> tuple[str, str]:
    """The path of the innermost module of the model that an error passed through, and the line."""
    names = {id(module): name for name, module in model.named_modules()}
    path, last = "", 0
    for k, (frame, _) in enumerate(traceback.walk_tb(error.__traceback__)):
        of_module = frame.f_locals.get("self")
        if id(of_module) in names:
            path, last = names[id(of_module)], k
    return path, innermost(traceback.format_tb(error.__traceback__)[1 : last + 1])
