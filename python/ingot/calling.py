# SPDX-License-Identifier: Apache-2.0
"""How a model is called: pytrees of arguments and results <-> flat lists of tensors. Works without torch.

The trees are torch's own JSON form (`torch.utils._pytree.treespec_dumps`): [1, {"type", "context", "children_spec"}] where
type null is a leaf. Tuples, lists, dicts and OrderedDicts are rebuilt here. Other classes are never imported because a file names
them: where the process has registered one with torch it is used, else a Record stands for it.
"""

from __future__ import annotations

import json
import math
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ingot.errors import UserError, kind_of

Tree = tuple[str | None, Any, list]  # (type, context, children)


def parse_tree(text: str) -> Tree | None:
    """The tree of a JSON spec; None for an empty text (flat calls)."""
    return _tree(json.loads(text)[1]) if text else None


def _tree(spec: dict) -> Tree:
    kind = spec["type"]
    context = _context(spec.get("context")) if kind is not None else None
    return kind, context, [_tree(child) for child in spec["children_spec"]]


def _context(text: Any) -> Any:
    """The fields of a class according to its spec: mostly JSON in a string."""
    try:
        return json.loads(text) if text else None
    except (TypeError, ValueError):
        return text


def is_leaf(tree: Tree) -> bool:
    return tree[0] is None


def is_flat_arguments(tree: Tree | None) -> bool:
    """True if a call is positional tensors only: then no flattening is needed."""
    if tree is None:
        return True
    positional, keywords = tree[2]
    return all(is_leaf(child) for child in positional[2]) and not keywords[2]


def flatten(tree: Tree, value: Any, path: str = "") -> list:
    """Leaves of `value` in the tree's order; UserError says where its structure differs."""
    kind, context, children = tree
    if kind is None:
        return [value]
    items = _items(kind, context, children, value, path)
    return [
        leaf
        for child, (name, item) in zip(children, items, strict=True)
        for leaf in flatten(child, item, path + name)
    ]


def _items(kind: str, context: Any, children: list, value: Any, path: str) -> list[tuple[str, Any]]:
    if kind in ("builtins.tuple", "builtins.list"):
        if not isinstance(value, (tuple, list)) or len(value) != len(children):
            raise UserError(
                f"argument{path or 's'}: expected {len(children)} items, got {_describe(value)}",
                code="INGOT-U300",
            )
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if kind in ("builtins.dict", "collections.OrderedDict"):
        if not isinstance(value, dict) or set(value) != set(context):
            raise UserError(
                f"argument{path or 's'}: expected the keys {context}, got {_describe(value)}",
                code="INGOT-U300",
            )
        return [(f"[{key!r}]", value[key]) for key in context]
    if kind == "builtins.NoneType" or kind is None:
        return []
    leaves, differs = _fields(value, kind, context)
    if len(leaves) != len(children):
        raise UserError(f"argument{path}: expected a {kind} of {len(children)} items", code="INGOT-U300")
    if differs:
        raise UserError(
            f"argument{path}: this {type(value).__name__} differs from the exported {kind} in something other than tensors, "
            f"which the program has as constants: {differs}",
            code="INGOT-U308",
            advice="export and build the model again with this value",
        )
    return [(f".{i}", leaf) for i, leaf in enumerate(leaves)]


def leaf_names(tree: Tree | None, names: Sequence[str], count: int) -> list[str]:
    """What a caller writes for each flat argument: "x", "options['scale']", "pair[0]"."""
    known = [*names, *map(str, range(len(names), count))]
    if tree is None:
        return known
    positional, keywords = tree[2]
    given = [*zip(known, positional[2], strict=False), *zip(keywords[1] or [], keywords[2], strict=True)]
    return [leaf for name, child in given for leaf in _leaf_names(child, name)]


def _leaf_names(tree: Tree, path: str) -> list[str]:
    kind, context, children = tree
    if kind is None:
        return [path]
    if kind in ("builtins.dict", "collections.OrderedDict"):
        steps = [f"[{key!r}]" for key in context]
    elif kind in ("builtins.tuple", "builtins.list"):
        steps = [f"[{position}]" for position in range(len(children))]
    else:
        steps = [f".{field}" for field in _field_names(context, len(children))]
    return [
        leaf for step, child in zip(steps, children, strict=True) for leaf in _leaf_names(child, path + step)
    ]


def check_value(name: str, fixed: Any, value: Any) -> None:
    """UserError INGOT-U308 unless an argument that is not a tensor has the value that the build fixed."""
    if value is fixed or is_same_value(fixed, value):
        return
    shown = repr(value) if isinstance(value, (bool, int, float, complex, str, type(None))) else kind_of(value)
    raise UserError(
        f"argument {name} was {fixed!r} when the model was exported and cannot be {shown} now",
        code="INGOT-U308",
        advice="export and build the model again with this value",
    )


def is_same_value(fixed: Any, value: Any) -> bool:
    """Whether a model computes the same with both: numbers of one type, with the same sign of zero, or both NaN.

    1, True and 1.0 are equal in Python, and lead to other dtypes.
    """
    if hasattr(value, "shape"):
        return False
    if isinstance(fixed, float) and isinstance(value, float):
        signs = math.copysign(1, fixed), math.copysign(1, value)
        return (fixed != fixed and value != value) or (fixed == value and signs[0] == signs[1])
    is_number = isinstance(fixed, _NUMBERS) or isinstance(value, _NUMBERS)
    return bool(value == fixed) and (not is_number or type(value) is type(fixed))


_NUMBERS = (bool, int, float, complex)


def _fields(value: Any, kind: str, context: Any) -> tuple[list, str]:
    """The children of an object of a class registered with torch, or of a Record that replaces one; and how what the class keeps
    beside its children differs from `context`.
    """
    if isinstance(value, (Record, dict)):
        return list(value.values()), ""
    if isinstance(value, (tuple, list)):
        return list(value), ""
    pytree = _pytree_with(kind)
    if pytree is None:
        return [], ""
    leaves, spec = pytree.tree_flatten(value, is_leaf=lambda item: item is not value)
    if len(leaves) == 1 and leaves[0] is value:  # torch does not know the class
        return [], ""
    if spec.context == context:
        return leaves, difference(context, spec.context)
    _, own, _ = parse_tree(pytree.treespec_dumps(spec))
    return leaves, difference(context, own)


def difference(expected: Any, actual: Any, path: str = "") -> str:
    """Where two JSON values differ first; "" if they do not."""
    if isinstance(expected, dict) and isinstance(actual, dict) and set(expected) == set(actual):
        pairs = [(f"{path}.{key}".lstrip("."), expected[key], actual[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = [(f"{path}[{i}]", *each) for i, each in enumerate(zip(expected, actual, strict=True))]
    else:
        return "" if is_same_value(expected, actual) else f"{path} was {expected!r}, is {actual!r}".lstrip()
    return next((text for name, *both in pairs if (text := difference(*both, name))), "")


def _pytree_with(names: str) -> Any:
    """torch's trees, knowing the classes that these names (of a spec) mention as far as this process has them; None without torch."""
    pytree = sys.modules.get("torch.utils._pytree")
    if pytree is not None:
        from ingot.pytrees import name_classes, register_caches

        name_classes()
        if "transformers." in names:
            register_caches()
    return pytree


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return f"the keys {list(value)}"
    return f"{len(value)} items" if isinstance(value, (tuple, list)) else type(value).__name__


def refuse_masked(values: Sequence[Any], checked: set[type]) -> None:
    """UserError for a masked array, whose mask would be lost. Other types are added to `checked`, so that later calls are fast."""
    for kind in set(map(type, values)) - checked:
        if any(base.__name__ == "MaskedArray" for base in kind.__mro__):
            raise UserError(
                "an input is a masked array, which engines do not support",
                code="INGOT-U309",
                advice="pass array.filled(value), or array.data to ignore the mask",
            )
        checked.add(kind)


def unflattener(text: str) -> Callable[[list], Any]:
    """A function from the flat outputs to the model's result."""
    tree = parse_tree(text)
    if tree is None:
        return lambda leaves: leaves[0] if len(leaves) == 1 else tuple(leaves)
    if is_leaf(tree):
        return operator.itemgetter(0)
    if _is_tuple_of_leaves(tree):
        return tuple
    spec = None if _is_plain(tree) else _registered_spec(text)
    if spec is not None:
        pytree = sys.modules["torch.utils._pytree"]
        return lambda leaves: pytree.tree_unflatten(leaves, spec)
    return lambda leaves: _rebuild(tree, iter(leaves))


def _is_tuple_of_leaves(tree: Tree) -> bool:
    return tree[0] == "builtins.tuple" and all(map(is_leaf, tree[2]))


def _registered_spec(text: str) -> Any:
    """torch's form of a spec; None if torch or a class of the spec is unknown in this process."""
    pytree = _pytree_with(text)
    if pytree is None:
        return None
    try:
        return pytree.treespec_loads(text)
    except (NotImplementedError, KeyError, ValueError):
        return None


class Record(dict):
    """A result whose class this process lacks: fields by attribute, by name and by position, in the class's order."""

    def __init__(self, kind: str, names: Sequence[str], values: Sequence[Any]) -> None:
        super().__init__(zip(names, values, strict=True))
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except KeyError:
            raise AttributeError(f"{self._kind} has no field {name!r}; it has {', '.join(self)}") from None

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple:
        return tuple(self.values())

    def __repr__(self) -> str:
        return f"{self._kind}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def _is_plain(tree: Tree) -> bool:
    plain = (None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")
    return tree[0] in plain and all(_is_plain(child) for child in tree[2])


def _rebuild(tree: Tree, leaves: Any) -> Any:
    kind, context, children = tree
    if kind is None:
        return next(leaves)
    values = [_rebuild(child, leaves) for child in children]
    if kind == "builtins.tuple":
        return tuple(values)
    if kind == "builtins.list":
        return values
    if kind == "builtins.NoneType":
        return None
    if kind not in ("builtins.dict", "collections.OrderedDict"):
        return Record(kind.rsplit(".", 1)[-1], _field_names(context, len(values)), values)
    pairs = zip(context, values, strict=True)
    return OrderedDict(pairs) if kind == "collections.OrderedDict" else dict(pairs)


def _field_names(context: Any, count: int) -> list[str]:
    """The field names that a class stored as the context of its spec; otherwise positions."""
    names = context if isinstance(context, list) else []
    proper = len(names) == count and all(isinstance(name, str) for name in names) and len(set(names)) == count
    return list(names) if proper else [f"field_{position}" for position in range(count)]


def counted(count: int) -> str:
    return f"{count} argument by position" if count == 1 else f"{count} arguments by position"


def _advice_without(missing: str, names: Sequence[str]) -> str:
    known = f"its arguments are {', '.join(names)}; " if names else ""
    whose = (
        f"{missing}, whose default the program has, leave it"
        if missing
        else "more, whose defaults the program has, leave them"
    )
    again = "it" if missing else "them"
    return f"{known}if the model takes {whose} out, or export and build it again with {again}"


def bind_names(args: Sequence, kwargs: dict, tree: Tree, names: Sequence[str]) -> tuple[tuple, dict]:
    """Moves keyword arguments that the program takes by position (and the reverse) to where it expects them."""
    positional, keywords = tree[2]
    wanted = len(positional[2])
    keyword_names = list(keywords[1] or [])
    args, kwargs = list(args), dict(kwargs)
    while len(args) < wanted and len(args) < len(names) and names[len(args)] in kwargs:
        args.append(kwargs.pop(names[len(args)]))
    for position in range(wanted, len(args)):
        if position < len(names) and names[position] in keyword_names and names[position] not in kwargs:
            kwargs[names[position]] = args[position]
    for name in kwargs:
        if name not in keyword_names:
            twice = name in names[: len(args)]
            raise UserError(
                f"argument {name} is given twice"
                if twice
                else f"the model was exported without an argument {name}",
                code="INGOT-U300",
                advice="" if twice else _advice_without(name, names),
            )
    if len(args) > wanted and len(args) > len(names):
        raise UserError(
            f"the model was exported with {counted(wanted)}, but got {len(args)}",
            code="INGOT-U300",
            advice=_advice_without("", names),
        )
    missing = [name for name in (*names[len(args) : wanted], *keyword_names) if name not in kwargs]
    if missing:
        raise UserError(
            f"argument {missing[0]} is missing",
            code="INGOT-U300",
            advice=f"the model's arguments are {', '.join(names)}" if names else "",
        )
    return tuple(args[:wanted] if len(args) > wanted and len(kwargs) == len(keyword_names) else args), kwargs
