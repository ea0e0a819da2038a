# SPDX-License-Identifier: Apache-2.0
"""Dynamo's own settings that decide where it breaks a graph, for a single compiled model instead of the whole process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ingot import compat, one_program

WHOLE_GRAPHS = ("allow_rnn", "capture_scalar_outputs", "capture_dynamic_output_shape_ops")


def compiled_whole(model: Any, backend: Callable, options: Mapping[str, Any]) -> Any:
    """torch.compile(model, backend, options), traced with WHOLE_GRAPHS set; with the process's own where torch lacks the means."""
    optimize = compat.find("torch._dynamo.optimize")
    wrapper = compat.find("torch._TorchCompileWrapper")
    if not callable(optimize) or not callable(wrapper) or torch.compiler.is_exporting():
        return torch.compile(model, backend=backend, options=dict(options))
    context = optimize(backend=wrapper(backend, None, dict(options), None))
    context.callback = _with_settings(context.callback, model, options)
    return context(model)


def _with_settings(callback: Callable, model: Any, options: Mapping[str, Any]) -> Callable:
    """Dynamo's callback, which is called for each frame to trace: calls of what was traced before cost nothing more. Other ranks hear
    where it fails."""
    known = [name for name in WHOLE_GRAPHS if hasattr(torch._dynamo.config, name)]

    @functools.wraps(callback)  # with its attributes, by which torch finds the backend
    def call(*args: Any, **kwargs: Any) -> Any:
        with (
            torch._dynamo.config.patch(dict.fromkeys(known, True)),
            one_program.calling(model, options, one_program.JUST_IN_TIME),
        ):
            return callback(*args, **kwargs)

    return call
