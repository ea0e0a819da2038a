# SPDX-License-Identifier: Apache-2.0
"""Ingot: an inference compiler and runtime. PyTorch models become engines: verified files that run fast without PyTorch.

    compiled = torch.compile(model, backend="ingot")            # just in time
    module = ingot.compile(model, inputs=[ingot.Input(...)])    # ahead of time
    engine = ingot.build("model.pt2"); engine.save("model.ingot")   # or "model.onnx"
    engine = ingot.Engine.load("model.ingot"); engine(x)        # needs no torch

What needs torch is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ingot.binding import HAS_COMPILER as _HAS_COMPILER
from ingot.binding import core as _core  # before the others, which take it from here
from ingot.engine import Engine, Port
from ingot.errors import DeviceError, Error, InternalError, UnsupportedError, UserError
from ingot.errors import require as _require
from ingot.peer_names import missing as _missing
from ingot.session import Session, cache_flush, cache_stats

if TYPE_CHECKING:
    from ingot.bisecting import bisect
    from ingot.building import build
    from ingot.comparing import compare
    from ingot.cross_compiling import cross_compile_for_windows, load_cross_compiled_exported_program
    from ingot.exporting import export_onnx
    from ingot.front import compile, report, stop_tuning, wait_until_tuned
    from ingot.inputs import Input
    from ingot.metrics_text import metrics
    from ingot.mutable import MutableModule
    from ingot.profiling import profile
    from ingot.quantization.quantize import quantize
    from ingot.refitting import refit_module_weights
    from ingot.saving import load, save

__version__: str = _core.version()
set_threads = _core.set_threads
get_threads = _core.get_threads

# Name -> module that defines it; all except `build`, `export_onnx`, `metrics`, `onnx` and `refit_module_weights` import torch.
_LAZY = {
    "bisect": "ingot.bisecting",
    "compare": "ingot.comparing",
    "compile": "ingot.front",
    "cross_compile_for_windows": "ingot.cross_compiling",
    "distributed": "ingot.distributed",
    "load_cross_compiled_exported_program": "ingot.cross_compiling",
    "build": "ingot.building",
    "report": "ingot.front",
    "stop_tuning": "ingot.front",
    "wait_until_tuned": "ingot.front",
    "Input": "ingot.inputs",
    "metrics": "ingot.metrics_text",
    "MutableModule": "ingot.mutable",
    "profile": "ingot.profiling",
    "quantize": "ingot.quantization.quantize",
    "save": "ingot.saving",
    "load": "ingot.saving",
    "dynamo": "ingot.dynamo",
    "export_onnx": "ingot.exporting",
    "fx": "ingot.fx",
    "onnx": "ingot.onnx",
    "ts": "ingot.ts",
    "refit_module_weights": "ingot.refitting",
    "runtime": "ingot.runtime",
}

# Those that raise UserError INGOT-U038 when they are called, with or without torch, in a package without the compiler.
_COMPILING = {"bisect", "build", "compile", "cross_compile_for_windows"}

__all__ = [
    "DeviceError", "Engine", "Error", "Input", "InternalError", "MutableModule", "Port", "Session", "UnsupportedError",
    "UserError", "bisect", "build", "cache_flush", "cache_stats", "compare", "compile", "cross_compile_for_windows", "distributed",
    "dynamo", "explain", "export_onnx", "fx", "get_threads", "load", "load_cross_compiled_exported_program", "metrics", "onnx",
    "profile", "quantize", "refit_module_weights", "report", "runtime", "save", "set_threads", "stop_tuning", "ts",
    "wait_until_tuned",
]  # fmt: skip


def explain(code: str) -> str | None:
    """The page of docs/errors.md on a code: "INGOT-N001", or "N001"; None if the code is unknown."""
    _require(code, str, "a code must be a str")
    return _core.explain(code)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise _missing("ingot", name)
    if name in _COMPILING and not _HAS_COMPILER:
        found = _core.fail_without_compiler
    else:
        module = importlib.import_module(_LAZY[name])
        found = module if _LAZY[name] == f"ingot.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def _register_run_op() -> None:
    """Makes `torch.export.load` know `ingot::run` after `import ingot`, if torch has been imported."""
    import sys

    if sys.modules.get("torch") is not None:
        importlib.import_module("ingot.run_op")


_register_run_op()
