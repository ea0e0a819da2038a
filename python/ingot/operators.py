# SPDX-License-Identifier: Apache-2.0
"""Names of torch's operators, in each spelling that users have."""

from __future__ import annotations

import difflib
import functools
import math
import operator
from typing import Any

import torch

from ingot import compat
from ingot.capture import target_name
from ingot.errors import UserError

_MODULES = {"operator": "_operator"}  # as users import it, and as Python prints it


def operator_names(value: Any) -> tuple[str, ...]:
    """The overloads that a value names, as ("aten.add.Tensor",).

    Spellings: "aten.add.Tensor", "torch.ops.aten.add.Tensor", "aten::add.Tensor", the overload itself; without an overload
    ("aten.add", "torch.ops.aten.add", "aten::add", torch.ops.aten.add) a value names all overloads of the operator.
    Functions of Python in graphs are "_operator.add", or operator.add itself. Raises UserError INGOT-U002 with the nearest name.
    """
    text = _text_of(value)
    namespace, *parts = text.split(".")
    if len(parts) == 1 and _is_function(namespace, parts[0]):
        return (text,)
    known = overloads(namespace, parts[0]) if parts else []
    if len(parts) == 1 and known:
        return tuple(f"{text}.{name}" for name in known)
    if len(parts) == 2 and parts[1] in known:
        return (text,)
    raise _unknown(value, namespace, parts, known)


def _text_of(value: Any) -> str:
    """Words with dots."""
    if isinstance(value, torch._ops.OpOverloadPacket):
        return str(value)
    if callable(value):
        return target_name(value)
    schema, _, _ = (
        str(value).strip().removeprefix("torch.ops.").partition("(")
    )  # "aten::abs(Tensor self) -> Tensor"
    namespace, dot, name = schema.replace("::", ".").partition(".")
    return f"{_MODULES.get(namespace, namespace)}{dot}{name}"


def _is_function(module: str, name: str) -> bool:
    """Whether graphs call this function that is not an ATen operator."""
    if module == "torch":
        return name.startswith("sym_") and hasattr(torch, name)
    if module == "higher_order":
        return hasattr(torch.ops.higher_order, name)
    return (module == "_operator" and hasattr(operator, name)) or (module == "math" and hasattr(math, name))


def overload(name: str, overload_name: str) -> Any:
    """The overload of an operator: ("aten::add", "Tensor")."""
    namespace, packet = name.split("::")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload_name or "default")


def overloads(namespace: str, packet: str) -> list[str]:
    """The overloads of an operator; [] if torch does not have it."""
    found = getattr(getattr(torch.ops, namespace, None), packet, None)
    names = getattr(found, "overloads", None)
    return list(names()) if callable(names) else []


def _unknown(value: Any, namespace: str, parts: list[str], known: list[str]) -> UserError:
    if known:
        message = f'"{value}" is not an overload of {namespace}.{parts[0]}'
        nearest = difflib.get_close_matches(".".join(parts[1:]), known, n=1, cutoff=0) or known
        advice = f'the nearest is "{namespace}.{parts[0]}.{nearest[0]}"'
    else:
        message = f'there is no operator "{value}" in torch'
        names = _nearest(namespace if len(parts) > 1 else "aten", (parts or [namespace])[0])
        advice = (
            f'the nearest is "{names[0]}"'
            if names
            else 'write "aten.add.Tensor", or torch.ops.aten.add.Tensor'
        )
    return UserError(
        message, code="INGOT-U002", advice=f"{advice}; ingot.report lists the operators of a model"
    )


def _nearest(namespace: str, packet: str) -> list[str]:
    packets = _packets(compat.operator_count())
    space = namespace if namespace in packets else "aten"
    return [f"{space}.{name}" for name in difflib.get_close_matches(packet, packets[space], n=1, cutoff=0.6)]


@functools.lru_cache(maxsize=1)
def _packets(operator_count: int) -> dict[str, list[str]]:
    """All operators by namespace, without overloads. `operator_count`: grows as libraries are imported."""
    packets: dict[str, set[str]] = {}
    for name in compat.operator_names():
        namespace, _, packet = name.partition(".")[0].partition("::")
        packets.setdefault(namespace, set()).add(packet)
    return {namespace: sorted(names) for namespace, names in packets.items()}
