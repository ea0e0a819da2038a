# SPDX-License-Identifier: Apache-2.0
"""The flat inputs and outputs of an engine's call: tensors, sizes that the tensors determine, and plain values."""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ingot import _core
from ingot.errors import UserError, kind_of


@dataclass(frozen=True)
class Slot:
    """One flat input or output. `value` is what it always is, if `is_value`.

    is_number: a tensor without dims for the engine, an int, float or bool for its callers.
    """

    is_tensor: bool = False
    is_number: bool = False
    is_value: bool = False
    value: Any = None


@dataclass(frozen=True)
class Signature:
    """How the model was called."""

    argument_names: list[str]
    input_tree: str
    output_tree: str
    inputs: list[Slot]
    outputs: list[Slot]
    origin: str
    target: str


def signature_of(engine: _core.Engine) -> Signature:
    fields = json.loads(engine.signature())
    return Signature(
        argument_names=fields["argument_names"],
        input_tree=fields["input_tree"],
        output_tree=fields["output_tree"],
        inputs=[_slot(**row) for row in fields["inputs"]],
        outputs=[_slot(**row) for row in fields["outputs"]],
        origin=fields["origin"],
        target=fields["target"],
    )


def tensor_positions(slots: Sequence[Slot]) -> list[int]:
    return [position for position, slot in enumerate(slots) if slot.is_tensor]


def filled(slots: Sequence[Slot], tensors: Iterable) -> list:
    """The flat values: tensors in their slots, and the plain values."""
    remaining = iter(tensors)
    values = [next(remaining) if slot.is_tensor else slot.value for slot in slots]
    return [value.item() if slot.is_number else value for value, slot in zip(values, slots, strict=True)]


def array_of(name: str, value: Any, others: Iterable) -> Any:
    """The i64 without dims that an integer is for an engine: a torch tensor where the first of the other arguments that is an array
    is one, or, without any, if torch is imported."""
    is_integer = hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "dim")
    if not is_integer or not -(1 << 63) <= operator.index(value) < 1 << 63:
        raise UserError(
            f"argument {name} is an integer of 64 bits, not {value if is_integer else kind_of(value)}",
            code="INGOT-U302",
        )
    torch = sys.modules.get("torch")
    first = next((other for other in others if hasattr(other, "shape")), None)
    if torch is not None and (first is None or isinstance(first, torch.Tensor)):
        return torch.full((), operator.index(value), device=None if first is None else first.device)
    import numpy

    return numpy.array(operator.index(value), numpy.int64)


def _slot(kind: str, value: Any = None, is_number: bool = False) -> Slot:
    if kind == "number":
        value = float(value)
    return Slot(
        is_tensor=kind == "tensor", is_number=is_number, is_value=kind not in ("tensor", "size"), value=value
    )
