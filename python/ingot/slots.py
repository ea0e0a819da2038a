# SPDX-License-Identifier: Apache-2.0
"""The flat inputs and outputs of an engine's call: tensors, sizes that the tensors determine, and plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ingot import _core


@dataclass(frozen=True)
class Slot:
    """One flat input or output. `value` is what it always is, if `is_value`."""

    is_tensor: bool = False
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
    return [next(remaining) if slot.is_tensor else slot.value for slot in slots]


def _slot(kind: str, value: Any = None) -> Slot:
    if kind == "number":
        value = float(value)
    return Slot(is_tensor=kind == "tensor", is_value=kind not in ("tensor", "size"), value=value)
