# SPDX-License-Identifier: Apache-2.0
"""The runtime of programs in parts: engines between parts in torch, and new values of mutated arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule

from ingot import _core, assertions
from ingot.capture import Input, Output
from ingot.errors import UserError
from ingot.kinds import InputRole, OutputRole
from ingot.slots import Slot, filled
from ingot.slowness import Slowness
from ingot.speed import Times
from ingot.staged_part import StagedPart
from ingot.views import restore_orders
from ingot.written import check_writable


@dataclass
class WithPlainOutputs:
    """Calls a runner, whose outputs are tensors, and inserts the outputs that are not."""

    runner: Callable[[list], list]
    outputs: Sequence[Slot]

    def __call__(self, arguments: list) -> list:
        return filled(self.outputs, self.runner(arguments))


class PartEngine(torch.nn.Module):
    """One engine inside a torch graph."""

    def __init__(
        self,
        runner: Callable[[list], list],
        engine: _core.Engine,
        users: Sequence[int],
        returns_one: bool,
        orders: dict[int, list[int]],
        slow: dict[str, Slowness],
        times: Times | None,
    ) -> None:
        super().__init__()
        self.runner = runner
        self.engine = engine
        self.users = list(
            users
        )  # the arguments that the engine takes at each call; the others are its weights
        self.returns_one = returns_one
        self.orders = orders  # torch's layout of results that are not dense, if torch reads them
        self.slow = (
            slow  # calls that the engine runs slower than torch would, by their names in the whole graph
        )
        self.times = times  # in torch and in the engine, where they were measured
        self.names: dict[str, str] = {}  # of its calls: in the engine -> in the whole graph
        self.precisions: dict[str, str] = {}  # of its contractions, by their names in the whole graph
        self.backends: dict[str, str] = {}  # of nodes that do not simply follow the device, likewise
        self.build: dict[str, Any] = {}  # what its build reported
        self.staged: StagedPart | None = None
        self.without_node: list[str] = []  # entries of disable_passes that name nodes of other parts, or none

    def fresh(self) -> PartEngine:
        """The same engine for another split."""
        twin = PartEngine(
            self.runner, self.engine, self.users, self.returns_one, self.orders, self.slow, self.times
        )
        twin.names, twin.precisions, twin.without_node = self.names, self.precisions, self.without_node
        twin.backends, twin.build, twin.staged = self.backends, self.build, self.staged
        return twin

    def forward(self, *arguments: object) -> object:
        try:
            return self.results(self.runner(list(arguments)))
        except UserError as error:
            if error.code not in _SIZE_ERRORS:
                raise
            raise _made_otherwise(error) from error

    def results(self, outputs: list) -> object:
        restore_orders(outputs, self.orders)
        return outputs[0] if self.returns_one else tuple(outputs)


# The caller's arguments were checked before: these errors can only be about results of a part in torch.
_SIZE_ERRORS = ("INGOT-U301", "INGOT-U302", "INGOT-U303", "INGOT-U304", "INGOT-U305")


def _made_otherwise(error: UserError) -> UserError:
    """A part in torch produced other sizes than the trace: torch traces with sizes of 2 or more, and smaller ones may be passed."""
    text = str(error).splitlines()[0].removeprefix(f"[{error.code}] ")
    return UserError(
        f"the program was traced for other sizes, which torch computes within it: {text}",
        code="INGOT-U312",
        advice="export the model with an example of such a size",
    )


class WriteBack:
    """Calls `module`, then copies the new values of mutated arguments into them."""

    def __init__(self, module: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output]) -> None:
        # An argument may have the same name as a buffer.
        position_of = {
            (given.kind == InputRole.USER, given.name): position for position, given in enumerate(inputs)
        }
        self.module = module
        self.names = [given.name for given in inputs]
        self.given = [position for position, given in enumerate(inputs) if given.kind == InputRole.USER]
        self.users = [k for k, what in enumerate(outputs) if what.kind == OutputRole.USER]
        self.writes = [
            (k, position_of[what.kind == OutputRole.INPUT_MUTATION, what.target])
            for k, what in enumerate(outputs)
            if what.kind != OutputRole.USER
        ]
        self.updated = {position for _, position in self.writes if position in self.given}

    def __call__(self, arguments: list) -> list:
        for position in self.updated:
            check_writable(arguments[position], f"input {self.names[position]!r}")
        self._refuse_shared_updates(arguments)
        try:
            result = self.module(*arguments)
        except RuntimeError as error:
            if (explained := assertions.raised(error)) is None:
                raise
            raise explained from error
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        for k, position in self.writes:
            arguments[position].copy_(results[k])
        return [results[k] for k in self.users]

    def _refuse_shared_updates(self, arguments: Sequence) -> None:
        """The check of src/runtime/arguments.cpp, for programs that run in parts."""
        if not self.updated:
            return
        tensors = [position for position in self.given if isinstance(arguments[position], torch.Tensor)]
        last, last_updated = (0, -1), (0, -1)  # with the largest end so far
        for begin, end, position in sorted((*_extent(arguments[k]), k) for k in tensors):
            is_updated = position in self.updated
            other_end, other = last if is_updated else last_updated
            if begin < min(end, other_end):
                written, shown = (position, other) if is_updated else (other, position)
                raise UserError(
                    f"input {self.names[written]!r} is updated in place, but input {self.names[shown]!r} overlaps it in memory",
                    code="INGOT-U314",
                    advice="pass a copy of one of them",
                )
            last = max(last, (end, position))
            if is_updated:
                last_updated = max(last_updated, (end, position))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The memory range as [begin, end); empty if there are no elements."""
    begin = tensor.data_ptr()
    if tensor.numel() == 0:
        return begin, begin
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (steps + 1) * tensor.element_size()
