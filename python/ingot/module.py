# SPDX-License-Identifier: Apache-2.0
"""What `ingot.compile` returns: a module that is called as the user's model was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree

from ingot.capture import USER, Input
from ingot.engine import Engine
from ingot.errors import UnsupportedError, UserError
from ingot.hybrid import Compiled
from ingot.reporting import Report


class CompiledModule(torch.nn.Module):
    """A compiled program: one engine, or engines with torch parts between them.

    Call it with the model's own arguments, positional or by keyword; it returns the model's own structure. `report` says what
    ran where. `engine` is the whole program's engine; UnsupportedError if torch runs parts of it.
    """

    def __init__(self, program: ExportedProgram, compiled: Compiled, inputs: Sequence[Input]) -> None:
        super().__init__()
        self.program = program
        self.report: Report = compiled.report
        self.compiled = compiled
        self._count = len(inputs)
        self._whole = Engine(compiled.engines[0]) if compiled.graph is None else None
        mutated = set(program.graph_signature.buffers_to_mutate.values())
        self._weights = {  # what calls change is this module's own
            position: given.data.clone() if given.name in mutated else given.data
            for position, given in enumerate(inputs)
            if given.kind != USER
        }

    @property
    def engine(self) -> Engine:
        if self._whole is None:
            raise UnsupportedError(
                f"the program is no single engine: torch runs {len(self.report.fallbacks)} of its nodes",
                code="INGOT-N002",
                advice="print ingot.report(module), or build with require_full_compilation=True for the reasons",
            )
        return self._whole

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # no hooks: a call crosses into C++ at once
        return self._whole(*args, **kwargs) if self._whole is not None else self._hybrid(args, kwargs)

    forward = __call__

    def _hybrid(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.rebuild(self.compiled.call(self.flat_arguments(args, kwargs)))

    def flat_arguments(self, args: tuple, kwargs: dict[str, Any]) -> list:
        """The program's flat inputs, weights among them."""
        leaves, found = _pytree.tree_flatten((args, kwargs))
        expected = self.program.call_spec.in_spec
        if found != expected:
            raise UserError(
                f"the arguments have the structure {found}, expected {expected}", code="INGOT-U300"
            )
        users = iter(leaves)
        return [self._weights[i] if i in self._weights else next(users) for i in range(self._count)]

    def rebuild(self, outputs: Sequence[Any]) -> Any:
        """The model's result from its flat outputs."""
        return _pytree.tree_unflatten(list(outputs), self.program.call_spec.out_spec)

    def refit(self, weights: Mapping[str, torch.Tensor]) -> None:
        """New values of weights by name, for all engines of the module."""
        for engine in self.compiled.engines:
            known = set(engine.weight_names())
            chosen = {name: value for name, value in weights.items() if name in known}
            if chosen:
                engine.refit(chosen)
