# SPDX-License-Identifier: Apache-2.0
"""Tests of engines by ctypes, in a process that also has the extension, which builds them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from ingot import (
    _core,
    _ctypes,
    capture,
    distributed,
    engine,
    loading,
    metrics_text,
    parts,
    ranks,
    refitting,
    run_op,
)


def reopened(core: Any) -> Any:
    """The same engine by ctypes."""
    return _ctypes.Engine.load_memory(core.save_memory()) if isinstance(core, _core.Engine) else core


class _Builder:
    """Builds by the extension."""

    def __init__(self, origin: str) -> None:
        self._builder = _core.Builder(origin)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)

    def build(self, *arguments: Any) -> tuple[Any, str]:
        core, report = self._builder.build(*arguments)
        return reopened(core), report


def _runner(
    core: Any,
    inputs: Sequence[int],
    weights: Sequence[tuple],
    like: Any,
    check: str,
    tensors: Any,
    contents: Any,
) -> _ctypes.Runner:
    """Does not watch weights, which takes the compiler's Runner."""
    return _ctypes.Runner(core, inputs, [], like)


def call_engines_by_ctypes(patch: pytest.MonkeyPatch) -> None:
    """Every engine that the package opens, or builds of a captured program, is called by ctypes."""
    for module in (distributed, engine, loading, metrics_text, ranks, refitting, run_op):
        patch.setattr(module, "_core", _ctypes)
    known = {name: getattr(_core, name) for name in dir(_core)}
    patch.setattr(capture, "_core", SimpleNamespace(**{**known, "Builder": _Builder}))
    patch.setattr(parts, "_core", SimpleNamespace(**{**known, "Runner": _runner}))
    plain = engine.Engine.__init__
    patch.setattr(engine.Engine, "__init__", lambda self, core: plain(self, reopened(core)))
