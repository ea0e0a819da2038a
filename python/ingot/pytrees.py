# SPDX-License-Identifier: Apache-2.0
"""Classes of the transformers library that are trees of tensors, but that torch learns of only from an exporter: caches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from torch.utils import _pytree

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
