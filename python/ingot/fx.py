# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch.fx, compiled ahead of time: `ingot.fx.compile(torch.fx.symbolic_trace(model), inputs=[...])`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ingot import front
from ingot.module import CompiledModule


def compile(
    model: torch.fx.GraphModule | torch.nn.Module,
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> CompiledModule:
    """Compiles a graph of torch.fx, or a module that torch.fx can trace.

    inputs and options as in `ingot.compile`. Returns a module that is called like the graph.
    """
    return front.compile(model, "fx", inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options)
