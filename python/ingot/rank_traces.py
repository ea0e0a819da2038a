# SPDX-License-Identifier: Apache-2.0
"""The traces of all ranks side by side, for rank="all": what is the same in all of them, and what each has of its own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from ingot import compat, rank_expressions, rank_labels, rank_texts, ranks
from ingot.capture import ANY_SIGN, DTYPES, Input, attribute_of, target_name
from ingot.errors import UserError
from ingot.kinds import InputRole
from ingot.linear_sizes import LinearSize
from ingot.rank_bodies import Body, graphs_of
from ingot.rank_expressions import Size
from ingot.rank_places import Places, comparing_group, own_groups, places_of
from ingot.source import line_of

Row = dict[str, Any]  # what one node of a trace is: all but the keys of _OWN has to be the same on all ranks
_OWN = ("scalars", "sizes", "content")


@dataclass
class Differences:
    """Where the traces differ, with one value per rank."""

    scalars: dict[Node, dict[int, list[Any]]] = field(
        default_factory=dict
    )  # by their order among the arguments
    sizes: dict[Node, list[list[list[Size]]]] = field(
        default_factory=dict
    )  # of each tensor of the value, each dim
    contents: dict[Node, list[torch.Tensor]] = field(default_factory=dict)  # of constants and integer buffers
    names: dict[Node, str] = field(default_factory=dict)  # of rank 0, if not all ranks have the same

    def numbers(self) -> list[tuple[Node, Sequence[Any]]]:
        """Scalars and sizes, each with its value on each rank."""
        scalars = [(node, vector) for node, known in self.scalars.items() for vector in known.values()]
        shapes = [(node, shape) for node, known in self.sizes.items() for shape in known]
        return scalars + [(node, vector) for node, shape in shapes for vector in shape]

    @property
    def are_any(self) -> bool:
        return bool(self.scalars or self.sizes or self.contents)


def compare(
    bodies: Sequence[Body], inputs: Sequence[Input], names: Sequence[str]
) -> tuple[Differences, Places]:
    """`names`: of the program's groups. UserError INGOT-U359 names the first node in which traces differ in anything else."""
    group = comparing_group(names)
    nodes = [node for body in bodies for node in _compared(body)]
    own = {"groups": own_groups(names), "rows": _rows(bodies, inputs, names), "names": [node.name for node in nodes],
           "ranges": rank_labels.ranges_of(nodes)}  # fmt: skip
    shown = [json.loads(text) for text in rank_texts.shared_texts(group, json.dumps(own))]
    traces = [each["rows"] for each in shown]
    found = Differences()
    differing = []
    for node, *rows in zip(nodes, *traces, strict=False):
        for rank, row in enumerate(rows):
            _require_same(node, rows[0], row, rank)
        columns = zip(*(rank_expressions.from_json(row["scalars"]) for row in rows), strict=True)
        scalars = {k: list(values) for k, values in enumerate(columns) if len(set(map(repr, values))) > 1}
        if scalars:
            found.scalars[node] = scalars
        if len({json.dumps(row["sizes"]) for row in rows}) > 1:
            found.sizes[node] = _sizes_of([rank_expressions.from_json(row["sizes"]) for row in rows])
        if len({row["content"] for row in rows}) > 1:
            differing.append(node)
    for rank, trace in enumerate(traces):
        if len(trace) != len(traces[0]):
            raise refusal(nodes[-1], f"rank 0 has {len(traces[0])} nodes and rank {rank} has {len(trace)}")
    places = places_of([each["groups"] for each in shown], group.rank(), group)
    for node in differing:
        if node.graph is not bodies[0].module.graph:
            raise refusal(node, "a constant in a branch has other elements")
    if differing:
        found.contents = _contents(bodies[0].module, inputs, differing, group)
    _require_forms(found)
    _require_places(found, places)
    if empty := rank_labels.narrow_ranges(nodes, [each["ranges"] for each in shown]):
        raise refusal(nodes[-1], f"no size {empty} is one that all ranks were traced for")
    if any(each["names"] != shown[0]["names"] for each in shown):
        found.names = dict(zip(nodes, shown[0]["names"], strict=True))
    return found, places


def _is_mixed(vector: Sequence[Any]) -> bool:
    """Whether it depends on the rank, and varies."""
    is_mixed = not rank_expressions.is_constant(vector) and len(set(vector)) > 1
    return is_mixed and any(isinstance(entry, tuple) for entry in vector)


def _require_forms(found: Differences) -> None:
    """Sizes that vary are of one form on all ranks, and of inputs of their graph."""
    for node, known in found.scalars.items():
        # In the branches the operand has the name of another symbol on each rank.
        if node.target is torch.ops.higher_order.cond and any(map(_is_mixed, known.values())):
            raise refusal(
                node, "its branches are given a number that varies", "compute it inside of the branches"
            )
    for node, vector in found.numbers():
        if not _is_mixed(vector):
            continue
        shown = ", ".join(map(rank_expressions.text_of, vector))
        if rank_expressions.terms_of(vector) is None:
            raise refusal(node, f"a size or position is {shown} on the ranks")
        if missing := rank_expressions.symbols_in(vector) - set(sizes_of_inputs(node.graph)):
            raise refusal(
                node, f"a size is {shown} on the ranks, of which no input has {', '.join(sorted(missing))}"
            )


def _require_places(found: Differences, places: Places) -> None:
    """What differs has to follow from the positions in the program's groups: contexts know no others."""
    values = found.numbers()
    for node, contents in found.contents.items():
        values.append((node, [_digest(content) for content in contents]))
    for node, vector in values:
        if places.axes_of(vector) is None:
            names = ", ".join(f"'{axis.name}'" for axis in places.axes)
            what = f"it differs between ranks that have the same position in each group ({names})"
            raise refusal(node, what)


LEFT_OUT = 'let each rank build its own engine: leave out rank="all"'
IN_A_TENSOR = (
    "keep the rank's number in a tensor: with self.own = torch.tensor(float(rank)), registered as a buffer, x * (k / 2 + self.own) "
    "is the same program on all ranks"
)
# By the operator that only some of the ranks have: Python drops those of numbers that change nothing, torch.compile what nothing reads.
_ADVICE = (
    (("_operator.", "torch.sym_"), IN_A_TENSOR),
    ("placeholder", "let all ranks read the same inputs, or compile ahead of time, where those that one rank drops stay: ingot.compile"),
)  # fmt: skip


def refusal(node: Node, what: str, advice: str = LEFT_OUT) -> UserError:
    return UserError(
        f"the program depends on the rank in a way that one program for all ranks cannot: {what}",
        code="INGOT-U359",
        node=node.name,
        source=line_of(node),
        advice=advice,
    )


def walk(argument: Any, scalar: Callable[[Any], Any], node: Callable[[Node], Any]) -> Any:
    """The arguments with their scalars and nodes replaced, in one order."""
    if isinstance(argument, Node):
        return node(argument)
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return scalar(argument)
    if isinstance(argument, (list, tuple)):
        walked = [walk(each, scalar, node) for each in argument]
        return tuple(walked) if isinstance(argument, tuple) else walked
    if isinstance(argument, dict):
        return {name: walk(each, scalar, node) for name, each in argument.items()}
    return argument


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Those of a node's value, which may be several."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [each for each in values if isinstance(each, torch.Tensor)]


def sizes_of_inputs(graph: Graph) -> dict[str, tuple[Node, int | None, LinearSize]]:
    """Per symbol, an input that is it, or from whose size along a dim it follows; an integer of any sign is found in a tensor."""
    found: dict[str, tuple[Node, int | None, LinearSize]] = {}
    for node in graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        sizes = value.shape if isinstance(value, torch.Tensor) else ()
        if isinstance(value, torch.SymInt):
            found.setdefault(str(value), (node, None, LinearSize(str(value))))
        for dim, size in enumerate(sizes):
            linear = LinearSize.of(size.node.expr) if isinstance(size, torch.SymInt) else None
            if linear is not None and (linear.is_alone or linear.symbol not in found):
                found[linear.symbol] = (node, dim, linear)
        if node.meta.get(ANY_SIGN):
            name = str(node.meta["val"])
            found[name] = (node, None, LinearSize(name))
    return found


# ---- what a trace is ----
def _compared(body: Body) -> list[Node]:
    """Not how sizes were computed, which may differ where what they are does not."""
    return [node for node in body.nodes if not rank_expressions.is_computed_size(node)]


def _rows(bodies: Sequence[Body], inputs: Sequence[Input], names: Sequence[str] = ()) -> list[Row]:
    rows = []
    for body in bodies:
        given = iter(inputs if body.outer is None else ())
        compared = _compared(body)
        positions = {node: f"%{position}" for position, node in enumerate(compared)}
        groups = {name: f"group {position}" for position, name in enumerate(names)}
        for node in compared:
            own = next(given, None) if node.op == "placeholder" else None
            rows.append(_row(body.module, node, {**positions, **groups}, own))
    return rows


def _row(module: GraphModule, node: Node, names: Mapping[Any, str], given: Input | None) -> Row:
    """`names`: of nodes, and of groups, which ranks have other names for."""
    scalars: list[Any] = []

    def keep(scalar: float) -> str:
        scalars.append(scalar)
        return type(scalar).__name__

    def name_of(other: Node) -> str:
        if not rank_expressions.is_size(other):
            return names[other]
        scalars.append(rank_expressions.size_of(other.meta["val"]))
        return "int"

    arguments = walk(_with_names(node, names), keep, name_of)
    row: Row = {
        "operator": node.op,
        "arguments": repr(arguments),
        "scalars": scalars,
        "sizes": [],
        "content": "",
    }
    if node.op == "call_function":
        row["operator"] = target_name(node.target)
    tensors = tensors_of(node.meta.get("val"))
    if tensors:
        row["type"] = " ".join(f"{value.dtype} of {value.ndim} dims" for value in tensors)
        row["sizes"] = [[rank_expressions.size_of(size) for size in value.shape] for value in tensors]
    if given is not None:
        row["value"] = f"{given.kind} {given.literal!r}"
        row["content"] = "" if _is_weight(given) else _digest(given.data)
    elif node.op == "get_attr":
        data = attribute_of(module, node.target)
        row["value" if isinstance(data, GraphModule) else "content"] = _content_of(node, data)
    return row


def _with_names(node: Node, names: Mapping[Any, str]) -> tuple[Any, Any]:
    """The arguments, with the program's names of groups, and without the numbers of GPUs: each rank has its own."""
    schema = getattr(node.target, "_schema", None)
    slots = [
        slot
        for k, argument in enumerate(getattr(schema, "arguments", ()))
        for slot in (k, argument.name)
        if argument.name in ranks.GROUP_ARGUMENTS
    ]

    def renamed(slot: int | str, value: Any) -> Any:
        if isinstance(value, torch.device):
            return value.type
        if slot not in slots:
            return value
        return (
            names.get(value, value) if isinstance(value, str) else [names.get(name, name) for name in value]
        )

    args = tuple(renamed(k, value) for k, value in enumerate(node.args))
    return args, {name: renamed(name, value) for name, value in node.kwargs.items()}


def _is_weight(given: Input) -> bool:
    """Weights may have any value; other tensors are constants of the program."""
    if given.data is None or given.kind == InputRole.CONSTANT:
        return False
    return given.data.is_floating_point() or given.data.is_complex()


def _content_of(node: Node, data: Any) -> str:
    """Of a graph whose nodes have rows of their own, nothing."""
    is_compared = any(node in graphs_of(user) for user in node.users)
    return "" if isinstance(data, GraphModule) and is_compared else _digest(data)


def _digest(data: Any) -> str:
    """Of a nested graph, all that it is: its scalars cannot differ either."""
    if isinstance(data, GraphModule):
        return hashlib.sha256(json.dumps(_rows([Body(data)], [])).encode()).hexdigest()
    return hashlib.sha256(_bytes(data)).hexdigest() if isinstance(data, torch.Tensor) else ""


def _bytes(data: torch.Tensor) -> bytes:
    with compat.with_real_tensors():
        content = data.detach().cpu().contiguous().view(-1)
        return content.view(torch.uint8).numpy().tobytes() if content.numel() else b""


# ---- where traces differ ----
def _require_same(node: Node, first: Row, other: Row, rank: int) -> None:
    for name in {**first, **other}:
        if name not in _OWN and first.get(name) != other.get(name):
            what = f"the {name} is {first.get(name)} on rank 0 and {other.get(name)} on rank {rank}"
            kinds = [str(row.get(name)) for row in (first, other)]
            found = (advice for prefix, advice in _ADVICE for kind in kinds if kind.startswith(prefix))
            raise refusal(node, what, next(found, LEFT_OUT))


def _sizes_of(by_rank: Sequence[Sequence[Sequence[Size]]]) -> list[list[list[Size]]]:
    """Per tensor and dim, the size on each rank."""
    return [[list(sizes) for sizes in zip(*shapes, strict=True)] for shapes in zip(*by_rank, strict=True)]


def _contents(
    module: GraphModule, inputs: Sequence[Input], differing: Sequence[Node], group: Any
) -> dict[Node, list[torch.Tensor]]:
    """The constants of all ranks, which only now are shown to the others: most programs have none that differ."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    given = dict(zip(placeholders, inputs, strict=False))
    own = [
        given[node].data if node in given else attribute_of(module, str(node.target)) for node in differing
    ]
    text = json.dumps([_as_json(data) for data in own])
    shown = [json.loads(each) for each in rank_texts.shared_texts(group, text)]
    return {
        node: [_from_json(rows[k]) for rows in shown]
        for k, node in enumerate(differing)
    }  # fmt: skip


def _as_json(data: torch.Tensor) -> Row:
    return {
        "dtype": int(DTYPES[data.dtype]),
        "shape": list(data.shape),
        "bytes": base64.b64encode(_bytes(data)).decode(),
    }


def _from_json(row: Mapping[str, Any]) -> torch.Tensor:
    dtype = next(known for known, number in DTYPES.items() if number == row["dtype"])
    content = bytearray(base64.b64decode(row["bytes"]))
    with compat.with_real_tensors():
        flat = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
        return flat.view(row["shape"]).clone()


def scalars_of(node: Node) -> Iterator[tuple[int | str, tuple[int, ...]]]:
    """Of each scalar, in the order of `walk`: the position or name of its argument, and where it is in its lists."""

    def places(argument: Any, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if isinstance(argument, (list, tuple)):
            for k, each in enumerate(argument):
                yield from places(each, (*path, k))
        elif isinstance(argument, Node):
            if rank_expressions.is_size(argument):
                yield path
        elif isinstance(argument, (int, float)) and not isinstance(argument, bool):
            yield path

    for slot, argument in [*enumerate(node.args), *node.kwargs.items()]:
        for path in places(argument, ()):
            yield slot, path
