# SPDX-License-Identifier: Apache-2.0
"""What a refit has to know of the names of a model's weights: which are one tensor, and which are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ingot.errors import UserError
from ingot.refitting import have_equal_bytes

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from ingot.capture import Input

Names = Sequence[Sequence[str]]


def place_of(value: torch.Tensor) -> tuple:
    """Equal for tensors that are the same view of one storage."""
    return (value.data_ptr(), value.dtype, value.shape, value.stride()) if value.numel() else (id(value),)


def tied_names(values: Mapping[str, torch.Tensor]) -> list[list[str]]:
    """The names of each tensor that has several."""
    names: dict[tuple, list[str]] = {}
    for name, value in values.items():
        names.setdefault(place_of(value), []).append(name)
    return [each for each in names.values() if len(each) > 1]


def with_other_names(inputs: Iterable[Input], tied: Names) -> list[Input]:
    """The inputs with the other names of their tensors."""
    others = {name: tuple(other for other in names if other != name) for names in tied for name in names}
    return [replace(given, other_names=others.get(given.name, ())) for given in inputs]


def unread_names(program: ExportedProgram) -> set[str]:
    """The weights and buffers that nothing in the program reads."""
    unread = {node.name for node in program.graph.nodes if node.op == "placeholder" and not node.users}
    return {spec.target for spec in program.graph_signature.input_specs if spec.arg.name in unread}


def is_asked_for(given: Input) -> bool:
    """Whether a full set of new weights has a value for it, where something reads it: as engines see it."""
    data = given.data
    is_matrix_of_bytes = data.dtype is torch.int8 and data.dim() >= 2
    return given.is_saved and (data.is_floating_point() or is_matrix_of_bytes)


def with_tied(values: Mapping[str, torch.Tensor], tied: Names) -> dict[str, torch.Tensor]:
    """The same with all names of the tensors that have several. UserError if their values differ."""
    complete = dict(values)
    for names in tied:
        given = [name for name in names if name in values]
        if len({(values[name].dtype, values[name].shape) for name in given}) > 1:
            continue  # one of them is wrong
        for name in given[1:]:
            if not have_equal_bytes(values[given[0]], values[name]):
                raise UserError(
                    f"the model uses one tensor as {given[0]!r} and {name!r}, but their new values differ",
                    code="INGOT-U326",
                    advice="pass one value for both; a model whose weights are no longer tied has to be built again",
                )
        if given:
            complete |= dict.fromkeys(names, values[given[0]])
    return complete
