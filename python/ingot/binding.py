# SPDX-License-Identifier: Apache-2.0
"""Which module calls the C API: the extension `ingot._core`, or `ingot._ctypes`, which has the same names without the compiler."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType

from ingot.errors import UserError

VARIABLE = "INGOT_PYTHON_BINDING"
_MODULES = {"extension": "ingot._core", "ctypes": "ingot._ctypes"}


def _find_core() -> ModuleType:
    """The module that INGOT_PYTHON_BINDING names; without it the extension, or `ingot._ctypes` in a package that has no extension."""
    name = os.environ.get(VARIABLE, "")
    if name not in ("", *_MODULES):
        raise UserError(
            f'the environment variable {VARIABLE} is one of {", ".join(_MODULES)}, not "{name}"',
            code="INGOT-U015",
        )
    if not name:
        name = "ctypes" if importlib.util.find_spec(_MODULES["extension"]) is None else "extension"
    return importlib.import_module(_MODULES[name])


core = _find_core()
HAS_COMPILER = core.__name__ == _MODULES["extension"]
