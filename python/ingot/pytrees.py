# SPDX-License-Identifier: Apache-2.0
"""Trees of classes that torch does not know, or cannot write: caches of the transformers library, named tuples, classes without names."""

from __future__ import annotations

import contextlib
import sys
from collections import namedtuple
from collections.abc import Iterator

from torch.utils import _pytree

from ingot.errors import UserError, first_line

_CACHES = "transformers.cache_utils"


def register_caches() -> None:
    """Makes torch flatten the library's caches as the library's own exporters do. Nothing in a process that does not use it."""
    caches = sys.modules.get(_CACHES)
    if caches is None or all(kind in _pytree.SUPPORTED_NODES for kind in _kinds(caches.Cache)):
        return
    try:
        from transformers.exporters.exporter_dynamo import register_pytree_node
    except ImportError:  # before transformers 5.19: of the dynamic cache only
        with contextlib.suppress(ImportError):
            from transformers.integrations.executorch import register_dynamic_cache_export_support

            register_dynamic_cache_export_support()
        return
    for kind in _kinds(caches.Cache):
        if kind not in _pytree.SUPPORTED_NODES:
            register_pytree_node(kind)


def _kinds(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def with_tuples(spec: _pytree.TreeSpec) -> _pytree.TreeSpec:
    """With tuples for what has no name in torch's JSON of specs: the results of `torch.max(x, 0)` and its like, and named tuples
    that are not registered with torch."""
    if spec.is_leaf():
        return spec
    children = [with_tuples(child) for child in spec.children()]
    is_unnamed = spec.type is namedtuple and spec.context not in _pytree.SUPPORTED_SERIALIZED_TYPES
    if is_unnamed or spec.type.__module__ == "torch.return_types":
        return _pytree.TreeSpec(tuple, None, children)
    return _pytree.TreeSpec(spec.type, spec.context, children)


def name_classes() -> None:
    """Gives classes that were registered with torch without a name, by which torch writes trees, the name that Python has for them."""
    for kind, node in list(_pytree.SUPPORTED_SERIALIZED_TYPES.items()):
        name = f"{kind.__module__}.{kind.__qualname__}"
        is_unnamed = node.serialized_type_name == _pytree.NO_SERIALIZED_TYPE_NAME_FOUND
        if (
            is_unnamed
            and not name.startswith("torch.")
            and name not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
        ):
            _pytree.SUPPORTED_SERIALIZED_TYPES[kind] = node._replace(serialized_type_name=name)
            _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = kind


def text_of(spec: _pytree.TreeSpec) -> str:
    """torch's JSON of a spec, with tuples as above."""
    name_classes()
    try:
        return _pytree.treespec_dumps(with_tuples(spec))
    except (NotImplementedError, TypeError) as error:
        raise UserError(
            f"the model takes or returns objects of a class that torch cannot write: {first_line(error)}",
            code="INGOT-U040",
            advice="register the class with to_dumpable_context and from_dumpable_context, or pass its tensors",
        ) from error
