# SPDX-License-Identifier: Apache-2.0
"""What an exported program tells about its arguments and results."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from ingot.views import storage_orders


def mutated_names(program: ExportedProgram) -> set[str | None]:
    """The buffers, parameters and arguments that a call of the program changes."""
    users = OutputKind.USER_OUTPUT
    return {spec.target for spec in program.graph_signature.output_specs if spec.kind is not users}


def eager_orders(program: ExportedProgram) -> dict[int, list[int]]:
    """The storage orders that results have in eager, by their positions, where they differ from dense ones."""
    output = next(node for node in program.graph.nodes if node.op == "output").args[0]
    specs = program.graph_signature.output_specs
    users = [v for v, spec in zip(output, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    return storage_orders(v.meta.get("val") if isinstance(v, torch.fx.Node) else None for v in users)


def argument_names(program: ExportedProgram) -> list[str]:
    """The top-level arguments of the flat user inputs, as far as torch kept their names."""
    entry = program.module_call_graph[0].signature
    return list(getattr(entry, "forward_arg_names", None) or [])


def positional_names(program: ExportedProgram, count: int) -> list[str]:
    """The names of the first arguments, or made-up ones."""
    names = argument_names(program)[:count]
    return names if len(names) == count else [f"argument_{position}" for position in range(count)]
