# SPDX-License-Identifier: Apache-2.0
"""The sizes and dtype of one input, as the caller specifies them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ingot.capture import LARGEST
from ingot.errors import UserError, kind_of


class Input:
    """One tensor input.

    Either `shape` (all dims fixed), or `min_shape`, `opt_shape` and `max_shape`: dims whose minimum and maximum differ are
    dynamic within that range, and the engine is optimized for `opt_shape`. torch.export requires example sizes of 2 or
    more for dynamic dims: the example uses `opt_shape`, raised to 2 if the range allows. It says nothing of empty tensors:
    a minimum of 0 counts as 1.

    name: the parameter of the model's forward that it is for; by default inputs go by position.
    format: Torch-TensorRT's; contiguous alone, since calls take tensors of any layout.
    """

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        *,
        min_shape: Sequence[int] | None = None,
        opt_shape: Sequence[int] | None = None,
        max_shape: Sequence[int] | None = None,
        dtype: torch.dtype = torch.float32,
        name: str = "",
        format: torch.memory_format = torch.contiguous_format,
    ) -> None:
        if shape is not None:
            if any(each is not None for each in (min_shape, opt_shape, max_shape)):
                raise UserError(
                    "an Input has a shape, or min_shape, opt_shape and max_shape, not both", code="INGOT-U006"
                )
            min_shape = opt_shape = max_shape = shape
        if min_shape is None or max_shape is None:
            raise UserError("an Input requires a shape, or min_shape and max_shape", code="INGOT-U006")
        self.min_shape = _sizes(min_shape)
        self.max_shape = _sizes(max_shape)
        self.opt_shape = _sizes(opt_shape if opt_shape is not None else max_shape)
        if not isinstance(dtype, torch.dtype):
            raise UserError(
                f"the dtype of an Input must be a torch.dtype, such as torch.float32, not {dtype!r}",
                code="INGOT-U006",
            )
        if not isinstance(name, str):
            raise UserError(f"the name of an Input must be a text, not {name!r}", code="INGOT-U006")
        if format is not torch.contiguous_format:
            raise UserError(
                f"the format of an Input cannot be {format!r}: calls take tensors of any layout",
                code="INGOT-U006",
                advice="leave it out; the compiler chooses the layouts inside of an engine",
            )
        self.dtype = dtype
        self.name = name
        ordered = zip(self.min_shape, self.opt_shape, self.max_shape, strict=False)
        same_rank = len(self.min_shape) == len(self.opt_shape) == len(self.max_shape)
        if not same_rank or not all(low <= typical <= high for low, typical, high in ordered):
            raise UserError(
                f"min_shape {self.min_shape} <= opt_shape {self.opt_shape} <= max_shape {self.max_shape} does not hold",
                code="INGOT-U006",
            )

    @staticmethod
    def from_tensor(tensor: torch.Tensor) -> Input:
        """With the fixed sizes and the dtype of a tensor."""
        if not isinstance(tensor, torch.Tensor):
            raise UserError(f"Input.from_tensor takes a tensor, not {kind_of(tensor)}", code="INGOT-U006")
        return Input(tuple(tensor.shape), dtype=tensor.dtype)

    @property
    def is_dynamic(self) -> bool:
        return self.min_shape != self.max_shape

    def example(self) -> torch.Tensor:
        """A tensor of the typical size: zeros for integers and bools, seeded noise otherwise."""
        sizes = [
            size if low == high else max(size, min(2, high))
            for size, low, high in zip(self.opt_shape, self.min_shape, self.max_shape, strict=True)
        ]
        if not (self.dtype.is_floating_point or self.dtype.is_complex):
            return torch.zeros(sizes, dtype=self.dtype)
        generator = torch.Generator().manual_seed(0)
        kind = torch.complex64 if self.dtype.is_complex else torch.float32
        return torch.randn(sizes, generator=generator, dtype=kind).to(self.dtype)

    def dynamic_dims(self) -> dict[int, Any]:
        """torch.export's description of the dynamic axes; equal sizes become one symbol if the model requires it."""
        chosen = {}
        for axis, (low, high) in enumerate(zip(self.min_shape, self.max_shape, strict=True)):
            if low != high:
                chosen[axis] = torch.export.Dim.DYNAMIC(min=low, max=high)
        return chosen

    def profile(self, name: str) -> str:
        """The compiler's `shapes` option for this input."""
        triples = zip(self.min_shape, self.opt_shape, self.max_shape, strict=True)
        dims = [str(low) if low == high else f"{low}..{typical}..{high}" for low, typical, high in triples]
        return f"{name}:{'x'.join(dims)}"

    def narrowed(self, ranges: Sequence[tuple[int, int] | None]) -> Input:
        """The same input, restricted to these ranges, one per dim (None: any)."""
        low, typical, high = list(self.min_shape), list(self.opt_shape), list(self.max_shape)
        for axis, known in enumerate(ranges):
            if known is None or low[axis] == high[axis]:
                continue
            low[axis] = min(max(low[axis], known[0]), high[axis])
            high[axis] = max(min(high[axis], known[1]), low[axis])
            typical[axis] = min(max(typical[axis], low[axis]), high[axis])
        return Input(min_shape=low, opt_shape=typical, max_shape=high, dtype=self.dtype, name=self.name)

    def __repr__(self) -> str:
        return f"Input(min_shape={self.min_shape}, opt_shape={self.opt_shape}, max_shape={self.max_shape}, dtype={self.dtype})"


def _sizes(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = (-1,) if isinstance(shape, (str, bytes)) else tuple(operator.index(size) for size in shape)
    except TypeError:
        sizes = (-1,)
    if not all(0 <= size <= LARGEST for size in sizes):
        raise UserError(f"a shape must be a list of non-negative integers, not {shape!r}", code="INGOT-U006")
    return sizes


_PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device)


def place(
    parameters: Sequence[str], positional: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Arguments of a call: inputs that name a parameter are passed by keyword, all others by position.

    UserError INGOT-U300 for a name that is not a parameter's, and for one that two inputs have.
    """
    named: dict[str, Any] = {}
    others = []
    for value in positional:
        name = value.name if isinstance(value, Input) else ""
        if not name:
            others.append(value)
        elif name not in parameters:
            raise UserError(
                f"an Input is for the argument {name}, which the model does not have",
                code="INGOT-U300",
                advice=f"its arguments are {', '.join(parameters)}; leave the name out for inputs by position",
            )
        elif name in named or name in keywords:
            raise UserError(f"the model's argument {name} is given twice", code="INGOT-U300")
        else:
            named[name] = value
    args = []
    for parameter in parameters:
        if parameter in named:
            args.append(named.pop(parameter))
        elif others and parameter not in keywords:
            args.append(others.pop(0))
        else:
            break
    return (*args, *others), {**named, **keywords}


def _place_of(path: tuple) -> str:
    """The place in the trees that a caller passed, of a path in (args, kwargs)."""
    return ("inputs", "kwarg_inputs")[path[0].idx] + _pytree.keystr(path[1:])


def examples(arguments: Any, device: torch.device | None = None) -> Any:
    """The same tree with an example tensor, on `device`, for each Input; UserError for anything that cannot be an argument."""
    leaves, spec = _pytree.tree_flatten_with_path(arguments)
    for path, value in leaves:
        if not isinstance(value, (Input, torch.Tensor, *_PLAIN)):
            raise UserError(
                f"{_place_of(path)} is {kind_of(value)}",
                code="INGOT-U006",
                advice="pass a tensor, an ingot.Input, a number, a string, None, or a tuple, list or dict of these",
            )
    values: list[Any] = []
    for _, value in leaves:
        # torch.export treats one tensor passed twice as one argument.
        is_again = isinstance(value, torch.Tensor) and any(value is other for other in values)
        if isinstance(value, Input):
            value = value.example().to(device)
        values.append(value.clone() if is_again else value)
    return _pytree.tree_unflatten(values, spec)


def dynamic_shapes(arguments: Any) -> Any:
    """torch.export's description of the dynamic axes: the same tree with {axis: Dim}, or None, for each leaf."""
    return shape_tree(
        arguments, lambda value: (value.dynamic_dims() or None) if isinstance(value, Input) else None
    )


def shape_tree(arguments: Any, describe: Callable[[Any], Any]) -> Any:
    """`describe` of each leaf, in the form of torch.export's `dynamic_shapes`: classes that were registered with pytree are
    replaced by what they flatten to."""

    def of(value: Any) -> Any:
        node = _pytree.SUPPORTED_NODES.get(type(value))
        return describe(value) if node is None else shape_tree(node.flatten_fn(value)[0], describe)

    return _pytree.tree_map(of, arguments, is_leaf=_is_no_container)


def _is_no_container(value: Any) -> bool:
    kind = type(value)
    return kind not in _pytree.BUILTIN_TYPES and not _pytree.is_namedtuple_class(kind)


def narrowed(
    program: torch.export.ExportedProgram,
    args: tuple,
    kwargs: Mapping[str, Any],
    range_of: Callable[[torch.export.ExportedProgram, Any], tuple[int, int] | None] | None = None,
) -> tuple[tuple, dict[str, Any]]:
    """The arguments with each Input narrowed to the sizes that the model accepts, as far as the export (or `range_of`) determined them."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = [str(name) for name in program.graph_signature.user_inputs]
    leaves, spec = _pytree.tree_flatten((args, dict(kwargs)))
    if len(names) != len(leaves):
        return args, dict(kwargs)
    for position, (leaf, name) in enumerate(zip(leaves, names, strict=True)):
        example = nodes[name].meta.get("val") if name in nodes else None
        if isinstance(leaf, Input) and isinstance(example, torch.Tensor):
            leaves[position] = leaf.narrowed(
                [(range_of or range_of_size)(program, size) for size in example.shape]
            )
    return _pytree.tree_unflatten(leaves, spec)


def range_of_size(program: torch.export.ExportedProgram, size: int | torch.SymInt) -> tuple[int, int] | None:
    """Of a dynamic dim, as far as the export determined it."""
    if isinstance(size, int):
        return None
    known = program.range_constraints.get(size.node.expr)
    if known is None:
        return None
    low = int(known.lower) if known.lower.is_finite else 0
    high = int(known.upper) if known.upper.is_finite else LARGEST
    return (low if low > 2 else 1), high  # torch traces with 2 or more; empty tensors may take other branches


def matched(
    spec: Any,
    arguments: Sequence[str],
    names: Sequence[str],
    positional: Sequence[Any],
    keywords: Mapping[str, Any],
) -> list[tuple[str, Any]]:
    """The flat inputs of a program that these arguments are for, by name.

    spec: the tree of a program's (args, kwargs); arguments: their names, as far as they are known; names: of the flat inputs.
    Trailing arguments may be left out.
    """
    by_position, by_keyword = spec.children()
    slots = dict(enumerate(by_position.children())) | dict(
        zip(by_keyword.context or [], by_keyword.children(), strict=True)
    )
    if arguments:  # torch kept their names
        positional, keywords = place(arguments, positional, keywords)
    positions = {name: position for position, name in enumerate(arguments[: len(by_position.children())])}
    given = dict(enumerate(positional)) | {positions.get(key, key): value for key, value in keywords.items()}
    unknown = [str(key) for key in given if key not in slots]
    if unknown:
        raise UserError(
            f"the program has no argument {unknown[0]}",
            code="INGOT-U300",
            advice=f"its inputs are {', '.join(names)}",
        )
    found: list[tuple[str, Any]] = []
    first = 0
    for key, slot in slots.items():
        leaves = _pytree.tree_leaves(given[key]) if key in given else []
        if leaves and len(leaves) != slot.num_leaves:
            raise UserError(
                f"argument {key}: expected {slot.num_leaves} leaves, got {len(leaves)}", code="INGOT-U300"
            )
        found += zip(names[first : first + slot.num_leaves], leaves, strict=False)
        first += slot.num_leaves
    return found
