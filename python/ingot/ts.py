# SPDX-License-Identifier: Apache-2.0
"""TorchScript models, compiled ahead of time: `ingot.ts.compile(model, inputs=[...])`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ingot import front
from ingot.module import CompiledModule
from ingot.peer_names import missing


def compile(
    model: torch.jit.ScriptModule | torch.jit.ScriptFunction | str | os.PathLike[str],
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> CompiledModule:
    """Compiles a scripted, traced or frozen module, a scripted function, or a file of torch.jit.save.

    inputs and options as in `ingot.compile`. Branches and loops over numbers and sizes are those that these inputs take. torch runs
    branches on values of tensors, which the report lists.
    Returns a module that is called like the model; NamedTuples in its result are tuples. Parameters and buffers have the names of
    the model's `state_dict`.
    Raises UnsupportedError INGOT-N008 with the line of what cannot be traced: loops whose count depends on values of tensors or on a
    dynamic size, attributes that calls change and that are not tensors.
    """
    return front.compile(model, "ts", inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options)


def __getattr__(name: str) -> Any:
    raise missing("ingot.ts", name)
