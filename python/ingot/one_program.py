# SPDX-License-Identifier: Apache-2.0
"""One program for all ranks, of the traces of all of them (docs/design/043): the option rank="all".

Numbers that differ become constants stored per rank, positions of slices gathers, sizes expressions over symbols that have a value per
rank (`rank_sizes`), and weights of different sizes parts of one type (`rank_weights`). Anything else that differs is refused with the
node's name.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from ingot import compat, rank_creation, rank_operators, rank_positions, rank_weights, ranks  # noqa: F401
from ingot.capture import Input, Output
from ingot.errors import UserError
from ingot.kinds import InputRole
from ingot.rank_sizes import Sizes, Vector
from ingot.rank_traces import Differences, compare, refusal, scalars_of, tensors_of, walk
from ingot.settings import Settings

_LARGE = "sizes that depend on the rank are for CPUs"
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


def unify(module: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output]) -> Unified:
    """Makes the graph that of all ranks. UserError INGOT-U359 names the node where they differ in what a program cannot."""
    names = sorted(set(ranks.groups_in(module)))
    unified = _as_before(module, inputs)
    if not names:
        return unified
    group = ranks.torch_group(names[0])
    if len(names) > 1:
        raise UserError(
            f'rank="all" is for programs with one group of ranks; this one has {", ".join(names)}',
            code="INGOT-U359",
            advice="let each rank build its own engine: leave out rank=",
        )
    if group.size() == 1:
        return unified
    found = compare(module, unified.inputs, group)
    if found.scalars or found.sizes or found.contents:
        unified = _Program(module, inputs, outputs, found, group).unified()
        module.meta["ingot_unified"] = unified
    return unified


def _as_before(module: GraphModule, inputs: Sequence[Input]) -> Unified:
    """A graph that is compiled again has the form of all ranks already, and is given its rank's tensors."""
    known = module.meta.get("ingot_unified")
    if known is None:
        return Unified(inputs)
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    again = [
        without_value(given) if given.name in known.constants else rank_weights.filled_up(node, given)
        for node, given in zip(nodes, inputs, strict=True)
    ]
    return Unified(again, known.shards, known.constants)


def without_value(given: Input) -> Input:
    """The input of a constant that the program has of all ranks: its own value means nothing, and a refit may give any."""
    with compat.with_real_tensors():
        nothing = torch.zeros_like(given.data, device="cpu")
    return replace(
        given, kind=InputRole.CONSTANT, name=f"{given.name} of all ranks", data=None, filled=nothing
    )


def settings_for(unified: Unified, settings: Settings) -> Settings:
    """One engine for all ranks, whose parts of weights are first those that were found, then those that the user declares."""
    compiler = {**settings.compiler, "rank": "any"}
    shards = [*unified.shards, *filter(None, [compiler.get("shards")])]
    if unified.shards:
        compiler["shards"] = ",".join(shards)
    return replace(settings, compiler=compiler)


def settings_of_part(settings: Settings, inputs: Sequence[Input]) -> Settings:
    """Of the entries for parts of different sizes, those of its weights."""
    shards = settings.compiler.get("shards", "")
    if "+" not in shards:
        return settings
    names = {given.name for given in inputs}
    own = [entry for entry in shards.split(",") if "+" not in entry or entry.rsplit(":", 1)[0] in names]
    return replace(settings, compiler={**settings.compiler, "shards": ",".join(own)})


class _Program:
    """A graph on its way to be that of all ranks."""

    def __init__(
        self,
        module: GraphModule,
        inputs: Sequence[Input],
        outputs: Sequence[Output],
        found: Differences,
        group: Any,
    ) -> None:
        self._module, self._found, self._group = module, found, group
        nodes = list(module.graph.nodes)
        self._inputs = dict(zip((node for node in nodes if node.op == "placeholder"), inputs, strict=True))
        self._targets = {output.target for output in outputs if output.target is not None}
        values = [value for node in nodes for value in tensors_of(node.meta.get("val"))]
        self._fake = next(value.fake_mode for value in values if hasattr(value, "fake_mode"))
        self._first = _beginning(module.graph)
        self._constants = _Constants(module, self._first, self._fake, group)
        vectors = [vector for shapes in found.sizes.values() for shape in shapes for vector in shape]
        self._with_positions = {node for node in found.scalars if self._are_positions(node)}
        self._size_scalars = {node: self._sizes_among(node) for node in found.scalars}
        vectors += [vector for scalars in self._size_scalars.values() for vector in scalars.values()]
        is_varying = any(len(set(vector)) > 1 for vector in vectors)
        if is_varying and any(value.is_cuda for value in values):
            raise refusal(next(iter({**found.sizes, **self._size_scalars})), _LARGE)
        self._require_equal_inputs()
        self._sizes = Sizes(vectors, self._first, self._fake, self._constants.rank)

    def unified(self) -> Unified:
        result = Unified([])
        self._set_sizes()
        for node, given in self._inputs.items():
            if node in self._found.sizes:
                shape = self._found.sizes[node][0]
                self._inputs[node], entry = rank_weights.fill_up(node, given, shape, self._first, self._sizes)
                result.shards.append(f"{entry}@{self._group.group_name}")
        for node, contents in self._found.contents.items():
            self._replace_content(node, contents, result)
        for node, differing in self._found.scalars.items():
            self._replace_scalars(node, differing)
        rank_weights.move_slices(self._module, self._sizes)
        self._module.graph.erase_node(self._first)
        self._module.graph.lint()
        self._module.recompile()
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

    def _sizes_among(self, node: Node) -> dict[int, Vector]:
        """Of the scalars of a node that differ, those that are sizes, by their order."""
        differing = self._found.scalars[node]
        places = list(scalars_of(node))
        if node in self._with_positions or rank_creation.is_creation(node):
            return {}
        return {
            order: values
            for order, values in differing.items()
            if _is_size(node, places[order][0]) and all(isinstance(value, int) for value in values)
        }

    def shape_of(self, node: Node, number: int = 0) -> list[Vector]:
        """Per dim, the size on each rank, also of nodes of which all ranks have the same."""
        if node in self._found.sizes:
            return self._found.sizes[node][number]
        return [[size] * self._constants.ranks for size in tensors_of(node.meta["val"])[number].shape]

    def _set_sizes(self) -> None:
        for node, shapes in self._found.sizes.items():
            value = node.meta["val"]
            made = [
                self._sizes.tensor(like, shape) for like, shape in zip(tensors_of(value), shapes, strict=True)
            ]
            node.meta["val"] = made[0] if isinstance(value, torch.Tensor) else type(value)(made)

    # ---- scalars and constants ----
    def _are_positions(self, node: Node) -> bool:
        """Asked while nodes have the sizes of this rank's trace."""
        differing, places = self._found.scalars[node], list(scalars_of(node))
        slots = {places[order][0] for order in differing if not places[order][1]}
        if len(slots) != len(differing) or not rank_positions.are_positions(node, slots):
            return False
        return not rank_positions.is_part(node) or node.args[0] not in self._found.sizes

    def _replace_scalars(self, node: Node, differing: dict[int, Vector]) -> None:
        places = list(scalars_of(node))
        values = {places[order][0]: vector for order, vector in differing.items()}
        if node in self._with_positions:
            return rank_positions.replace(node, values, self._constants, self.shape_of, self._sizes)
        if rank_creation.is_creation(node):
            return rank_creation.replace(node, values, self._constants, self.shape_of(node), self._sizes)
        sizes, slots = self._size_scalars[node], []
        made: dict[int, Any] = {order: self._sizes.node(vector) for order, vector in sizes.items()}
        for order, vector in differing.items():
            slot, path = places[order]
            if order in made:
                continue
            if path or tensor_overload(node, slot) is None:
                raise refusal(node, f"a size or position is {', '.join(map(str, vector))} on the ranks")
            made[order] = self._constants.of(vector)
            slots.append(slot)
        order = iter(range(len(places)))
        replaced = walk(
            (node.args, node.kwargs), lambda scalar: made.get(next(order), scalar), lambda other: other
        )
        node.args, node.kwargs = replaced
        for slot in slots:
            node.target = tensor_overload(node, slot)
        if slots:
            _require_type(node, self._fake)
        return None

    def _replace_content(self, node: Node, contents: Sequence[torch.Tensor], result: Unified) -> None:
        """A constant of which each rank has its own becomes a part of one that has those of all."""
        if self._is_changed(node):
            raise refusal(node, "a buffer that calls change has another value on each rank")
        like = contents[0]
        if any((each.dtype, each.shape) != (like.dtype, like.shape) for each in contents):
            raise refusal(node, "a constant has other sizes on each rank")
        with compat.with_real_tensors():
            table = torch.stack(list(contents))
        node.replace_all_uses_with(self._constants.own_part(table, list(like.shape)))
        if node.op == "get_attr":
            self._module.graph.erase_node(node)
            return
        given = self._inputs[node]
        self._inputs[node] = without_value(given)
        result.constants.append(given.name)


class _Constants:
    """Nodes for constants stored per rank, ahead of all others."""

    def __init__(self, module: GraphModule, first: Node, fake: Any, group: Any) -> None:
        self._module, self._fake, self._group = module, fake, group
        self._first, self._count = first, 0
        self._call = rank_positions.Calls(first, fake)
        self.ranks = group.size()
        self._rank: Node | None = None

    def of(self, values: Vector) -> Node:
        """This rank's entry, a tensor without dims."""
        dtype = torch.int64 if all(isinstance(value, int) for value in values) else torch.float64
        with compat.with_real_tensors():
            table = torch.tensor(values, dtype=dtype)
        return self.own_part(table, [])

    def own_part(self, table: torch.Tensor, shape: Sequence[int]) -> Node:
        own = self._call(torch.ops.aten.index_select.default, self.constant(table), 0, self.rank())
        return self._call(torch.ops.aten.view.default, own, list(shape))

    def positions(self, values: Sequence[int]) -> Node:
        with compat.with_real_tensors():
            return self.constant(torch.tensor(values, dtype=torch.int64))

    def constant(self, data: torch.Tensor) -> Node:
        name = f"_of_ranks_{self._count}"
        self._count += 1
        self._module.register_buffer(name, data)
        with self._module.graph.inserting_before(self._first):
            node = self._module.graph.get_attr(name)
        node.meta["val"] = self._fake.from_tensor(data, static_shapes=True)
        return node

    def rank(self) -> Node:
        """A tensor of one integer, by a collective of the same elements on all ranks, of which each gets its own."""
        if self._rank is None:
            functional = torch.ops._c10d_functional
            everyone = self.positions(range(self.ranks))
            started = self._call(
                functional.reduce_scatter_tensor.default, everyone, "max", self.ranks, self._group.group_name
            )
            self._rank = self._call(functional.wait_tensor.default, started)
        return self._rank


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


def _beginning(graph: Graph) -> Node:
    """A node of no use, before which all new ones of the beginning go: others may be replaced."""
    first = next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))
    with graph.inserting_before(first):
        return graph.call_function(operator.pos, (0,))
