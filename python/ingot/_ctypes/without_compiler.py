# SPDX-License-Identifier: Apache-2.0
"""What is raised by everything that needs the compiler, which this package does not have."""

from __future__ import annotations

from typing import Any, NoReturn

from ingot.errors import UserError


def fail_without_compiler(*_: Any, **__: Any) -> NoReturn:
    raise UserError(
        "this package has no compiler",
        code="INGOT-U038",
        advice="build on Linux, for this system by ingot.cross_compile_for_windows or `ingot build MODEL --target windows-x86-64`, "
        "and load the file here: ingot.Engine.load or ingot.load_cross_compiled_exported_program",
    )
