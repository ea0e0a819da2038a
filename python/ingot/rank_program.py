# SPDX-License-Identifier: Apache-2.0
"""The graph of one rank on its way to be that of all, for rank="all"."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import Node

from ingot import compat, rank_creation, rank_positions, rank_products, rank_weights
from ingot.capture import Input, Output
from ingot.kinds import InputRole
from ingot.partition import is_number
from ingot.rank_bodies import Body
from ingot.rank_constants import Constants
from ingot.rank_expressions import Size, coefficients_in, is_computed_size, is_constant, is_size, size_of
from ingot.rank_places import Places, Vector
from ingot.rank_sizes import Sizes, Symbols
from ingot.rank_traces import IN_A_TENSOR, LEFT_OUT, Differences, refusal, scalars_of, tensors_of, walk

_VARYING_INPUT = (
    "give inputs whose sizes differ a size that varies: ingot.Input(min_shape=, max_shape=), or mark_dynamic"
)


@dataclass
class Unified:
    """What the graph's inputs became, and what the compiler has to know about them."""

    inputs: Sequence[Input]
    shards: list[str] = field(default_factory=list)  # entries of the option `shards`
    constants: list[str] = field(
        default_factory=list
    )  # buffers of integers, of which the program has those of all ranks
    groups: dict[str, str] = field(default_factory=dict)  # this rank's name of a group -> the program's


def without_value(given: Input) -> Input:
    """The input of a constant that the program has of all ranks: its own value means nothing, and a refit may give any."""
    with compat.with_real_tensors():
        nothing = torch.zeros_like(given.data, device="cpu")
    return replace(
        given, kind=InputRole.CONSTANT, name=f"{given.name} of all ranks", data=None, filled=nothing
    )


class Program:
    """The graphs of this rank's trace, and what differs in those of the others."""

    def __init__(
        self,
        bodies: Sequence[Body],
        inputs: Sequence[Input],
        outputs: Sequence[Output],
        found: Differences,
        places: Places,
    ) -> None:
        self._bodies, self._found, self._places = bodies, found, places
        placeholders = [node for node in bodies[0].nodes if node.op == "placeholder"]
        self._inputs = dict(zip(placeholders, inputs, strict=True))
        self._targets = {output.target for output in outputs if output.target is not None}
        values = [
            value for body in bodies for node in body.nodes for value in tensors_of(node.meta.get("val"))
        ]
        self._fake = next(value.fake_mode for value in values if hasattr(value, "fake_mode"))
        self._device = next((value.device for value in values if value.is_cuda), torch.device("cpu"))
        self._positions = {node: where for node in found.scalars if (where := self._positions_of(node))}
        self._size_scalars = {node: self._sizes_among(node) for node in found.scalars}
        sizes = [vector for shapes in found.sizes.values() for shape in shapes for vector in shape]
        sizes = [vector for vector in sizes if len(set(vector)) > 1]
        sizes += [vector for scalars in self._size_scalars.values() for vector in scalars.values()]
        vectors = [numbers for vector in sizes for numbers in coefficients_in(vector)]
        vectors += [vector for where in self._positions.values() for vector in where.vectors()]
        self._require_equal_inputs()
        self._symbols = Symbols(vectors, self._fake, places)

    def unified(self, in_torch: Collection[Node]) -> Unified:
        result = Unified([])
        graphs: list[_Graph] = []
        for body in self._bodies:
            outer = next((graph for graph in graphs if graph.body is body.outer), None)
            graphs.append(_Graph(body, outer, self._symbols, self._fake, self._device, self._places))
        self._set_sizes(graphs[0].sizes)
        self._fill_weights(graphs[0], result)
        for node, contents in self._found.contents.items():
            self._replace_content(node, contents, graphs[0].constants, result)
        for node, differing in self._found.scalars.items():
            graph = next(graph for graph in graphs if graph.body.module.graph is node.graph)
            self._replace_scalars(node, differing, graph)
        rank_products.move_slices(self._bodies[0].module, in_torch)
        for graph in reversed(graphs):
            graph.finish()
        result.inputs = list(self._inputs.values())
        return result

    # ---- sizes ----
    def _require_equal_inputs(self) -> None:
        for node, given in self._inputs.items():
            if node not in self._found.sizes:
                continue
            if given.data is None or node in self._found.contents or self._is_changed(node):
                shown = " and ".join(
                    str(list(sizes)) for sizes in zip(*self._found.sizes[node][0], strict=True)
                )
                advice = {"advice": _VARYING_INPUT} if given.kind == InputRole.USER else {}
                raise refusal(node, f"its sizes are {shown} on the ranks", **advice)

    def _is_changed(self, node: Node) -> bool:
        return bool(self._targets & {node.name, getattr(self._inputs.get(node), "name", node.name)})

    def _sizes_among(self, node: Node) -> dict[int, Sequence[Size]]:
        """Of the scalars of a node that differ, those that are sizes, by their order."""
        differing = self._found.scalars[node]
        places = list(scalars_of(node))
        if node in self._positions:
            return {}
        return {
            order: values
            for order, values in differing.items()
            if any(isinstance(value, tuple) for value in values)
            or (
                not rank_creation.is_creation(node)
                and _is_size(node, places[order][0])
                and is_constant(values)
            )
        }

    def _shape_of(self, node: Node, number: int = 0) -> list[Sequence[Size]]:
        """Per dim, the size on each rank, also of nodes of which all ranks have the same."""
        if node in self._found.sizes:
            return self._found.sizes[node][number]
        return [[size_of(size)] * self._places.count for size in tensors_of(node.meta["val"])[number].shape]

    def _set_sizes(self, sizes: Sizes) -> None:
        for node, shapes in self._found.sizes.items():
            value = node.meta["val"]
            made = [sizes.tensor(like, shape) for like, shape in zip(tensors_of(value), shapes, strict=True)]
            node.meta["val"] = made[0] if isinstance(value, torch.Tensor) else type(value)(made)

    def _fill_weights(self, graph: _Graph, result: Unified) -> None:
        for node, given in self._inputs.items():
            if node not in self._found.sizes:
                continue
            shape = self._found.sizes[node][0]
            self._inputs[node], divided, vector = rank_weights.fill_up(
                node, given, shape, graph.first, graph.sizes
            )
            axes = self._places.axes_of(vector) or []
            if len(axes) > 1:
                names = " and ".join(f"'{axis.name}'" for axis in axes)
                raise refusal(node, f"the sizes of a weight depend on the positions in {names}")
            result.shards.append(f"{divided}/{'+'.join(map(str, axes[0].in_order(vector)))}@{axes[0].name}")

    # ---- scalars and constants ----
    def _positions_of(self, node: Node) -> rank_positions.Positions | None:
        """Asked while nodes have the sizes of this rank's trace. None if other arguments differ too."""
        differing, places = self._found.scalars[node], list(scalars_of(node))
        values = {places[order][0]: vector for order, vector in differing.items() if not places[order][1]}
        is_known = len(values) == len(differing) and all(map(is_constant, values.values()))
        if not is_known or not rank_positions.are_positions(node, set(values)):
            return None
        if rank_positions.is_part(node) and node.args[0] in self._found.sizes:
            return None
        return rank_positions.positions_of(node, values, self._shape_of)

    def _replace_scalars(self, node: Node, differing: dict[int, Vector], graph: _Graph) -> None:
        places = list(scalars_of(node))
        values = {places[order][0]: vector for order, vector in differing.items()}
        constants, graph_sizes = graph.constants, graph.sizes
        if node in self._positions:
            return rank_positions.replace(node, self._positions[node], constants, graph_sizes)
        if rank_creation.is_creation(node):
            return rank_creation.replace(node, values, constants, self._shape_of(node), graph_sizes)
        starts = rank_positions.starts_of(node, values)
        if starts is not None:
            return rank_positions.replace_varying(node, starts, self._shape_of, graph_sizes)
        sizes, slots = self._size_scalars[node], []
        made: dict[int, Any] = {order: graph_sizes.node(vector) for order, vector in sizes.items()}
        for order, vector in differing.items():
            slot, path = places[order]
            if order in made:
                continue
            if path or tensor_overload(node, slot) is None:
                what = f"a size or position is {', '.join(map(str, vector))} on the ranks"
                raise refusal(node, what, IN_A_TENSOR if is_number(node) else LEFT_OUT)
            made[order] = constants.of(vector)
            slots.append(slot)
        order = iter(range(len(places)))
        replaced = walk(
            (node.args, node.kwargs),
            lambda scalar: made.get(next(order), scalar),
            lambda other: made.get(next(order), other) if is_size(other) else other,
        )
        node.args, node.kwargs = replaced
        for slot in slots:
            node.target = tensor_overload(node, slot)
        if slots:
            _require_type(node, self._fake)
        return None

    def _replace_content(
        self, node: Node, contents: Sequence[torch.Tensor], constants: Constants, result: Unified
    ) -> None:
        """A constant of which each rank has its own becomes a part of one that has those of all."""
        if self._is_changed(node):
            raise refusal(node, "a buffer that calls change has another value on each rank")
        like = contents[0]
        if any((each.dtype, each.shape) != (like.dtype, like.shape) for each in contents):
            raise refusal(node, "a constant has other sizes on each rank")
        with compat.with_real_tensors():
            table = torch.stack(list(contents))
        node.replace_all_uses_with(constants.own_part(table, list(like.shape)))
        if node.op == "get_attr":
            node.graph.erase_node(node)
            return
        given = self._inputs[node]
        self._inputs[node] = without_value(given)
        result.constants.append(given.name)


# What may turn out to be of no use beside sums of sizes: parts of weights that products read whole. Sizes of the rank stay, since a
# branch may return tensors of these sizes.
_MADE = (torch.ops.aten.slice.Tensor,)


class _Graph:
    """One of the graphs, and where its new nodes go."""

    def __init__(
        self,
        body: Body,
        outer: _Graph | None,
        symbols: Symbols,
        fake: Any,
        device: torch.device,
        places: Places,
    ) -> None:
        self.body, self.first = body, body.beginning()
        self.sizes = Sizes(symbols, self.first, fake)
        around = outer.constants if outer is not None else None
        self.constants = Constants(body, self.first, fake, device, places, around)

    def finish(self) -> None:
        graph = self.body.module.graph
        graph.erase_node(self.first)
        for node in reversed(list(graph.nodes)):
            if (node.target in _MADE or is_computed_size(node)) and not node.users:
                graph.erase_node(node)
        graph.lint()
        self.body.module.recompile()


def tensor_overload(node: Node, slot: int | str) -> Any:
    """The overload that takes a tensor as this argument; None if there is none."""
    schema = getattr(node.target, "_schema", None)
    if (
        node.op != "call_function"
        or schema is None
        or not isinstance(slot, int)
        or slot >= len(schema.arguments)
    ):
        return None
    if str(schema.arguments[slot].type) == "Tensor":
        return node.target
    for name in ("Tensor", "Tensor_Tensor"):
        other = getattr(node.target.overloadpacket, name, None)
        takes = other is not None and len(other._schema.arguments) > slot
        if takes and str(other._schema.arguments[slot].type) == "Tensor":
            return other
    return None


def _is_size(node: Node, slot: int | str) -> bool:
    arguments = getattr(getattr(node.target, "_schema", None), "arguments", ())
    found = (a for k, a in enumerate(arguments) if slot in (k, a.name))
    return any(_element_kind(argument.real_type) == "SymIntType" for argument in found)


def _element_kind(kind: Any) -> str:
    """Of a type of a schema, of what its lists hold."""
    while kind.kind() in ("ListType", "OptionalType"):
        kind = kind.getElementType()
    return kind.kind()


def _require_type(node: Node, fake: Any) -> None:
    """A tensor without dims may promote what a scalar does not: an integer tensor, say."""
    args, kwargs = walk((node.args, node.kwargs), lambda scalar: scalar, lambda other: other.meta["val"])
    try:
        with fake:
            value = node.target(*args, **kwargs)
    except Exception as error:
        if compat.is_data_dependence(error):
            return  # the importer infers the type again
        raise
    expected = node.meta["val"]
    if (value.dtype, str(value.shape)) != (expected.dtype, str(expected.shape)):
        raise refusal(
            node, f"with a tensor in place of a scalar the result is {value.dtype}, not {expected.dtype}"
        )
