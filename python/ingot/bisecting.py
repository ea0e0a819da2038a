# SPDX-License-Identifier: Apache-2.0
"""Which rewrite of a pass makes a result differ: `print(ingot.bisect(model, inputs))`."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ingot import _core
from ingot.engine import Engine
from ingot.front import export
from ingot.settings import Settings

_log = logging.getLogger("ingot")

Outputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Culprit:
    """The first rewrite after which the result is wrong.

    pass_name, rule ("" if the pass has none), node, op and source (the line of the model) say what was rewritten; all are "" if
    the result is wrong before any optional pass. limit: the option bisect_passes of that build; builds: how many were made.
    """

    pass_name: str
    rule: str
    node: str
    op: str
    source: str
    limit: str
    builds: int

    @property
    def disable(self) -> str:
        """The entry of disable_passes that leaves the node as it is."""
        return f"{self.pass_name}{'.' + self.rule if self.rule else ''}@{self.node}" if self.pass_name else ""

    def __str__(self) -> str:
        if not self.pass_name:
            return f"wrong before any optional pass ({self.builds} builds): kernels or passes of level 0 are the cause"
        rule = f", rule {self.rule}" if self.rule else ""
        return (
            f'the pass {self.pass_name}{rule} at "{self.node}" ({self.op}) {self.source}\n'
            f"  found in {self.builds} builds; bisect_passes={self.limit} is the first that is wrong; "
            f"disable_passes={self.disable} leaves that node as it is"
        )


class _Search:
    """Builds of one program up to a limit, with their outputs and reports."""

    def __init__(self, path: str, inputs: Sequence[torch.Tensor], options: dict[str, Any]) -> None:
        self.path, self.inputs, self.options = path, inputs, options
        self.builds = 0

    def run(self, limit: str) -> tuple[Outputs, dict]:
        settings = Settings.parse({**self.options, "bisect_passes": limit, "cache_built_engines": False})
        built, report = _core.build_pt2(
            self.path,
            settings.compiler,
            settings.progress,
            settings.metadata,
            None,
            settings.custom_engine_cache,
        )
        self.builds += 1
        outputs = Engine(built)(*[value.clone() for value in self.inputs])
        return outputs if isinstance(outputs, tuple) else (outputs,), json.loads(report)


def _differs(rtol: float, atol: float, reference: Outputs) -> Callable[[Outputs], bool]:
    def check(outputs: Outputs) -> bool:
        return not all(
            torch.allclose(value, right, rtol=rtol, atol=atol, equal_nan=True)
            for value, right in zip(outputs, reference, strict=True)
        )

    return check


def bisect(
    model: torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str],
    inputs: Sequence[torch.Tensor],
    *,
    is_wrong: Callable[[Outputs], bool] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    **options: Any,
) -> Culprit | None:
    """Finds the pass, then the node, that makes a result wrong; None if the result of all passes is right.

    model: a module, an exported program or a .pt2 file, which has to become one engine. inputs: tensors on the host, by position.
    is_wrong: judges the outputs (a tuple of tensors) of a build; without it, a result is wrong that differs from the one without
    optional passes by more than atol + rtol * |value|. options: as for `ingot.build`.

    Builds about log2(passes) + log2(rewrites of one) engines; each is logged at level info. Assumes that a result that is wrong
    after some rewrites stays wrong after more. UnsupportedError as `ingot.build`.
    """
    if isinstance(model, (str, os.PathLike)):
        return _bisect_file(os.fspath(model), inputs, is_wrong, rtol, atol, options)
    program = export(model, tuple(inputs), {}) if isinstance(model, torch.nn.Module) else model
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt2")
        torch.export.save(program, path)
        return _bisect_file(path, inputs, is_wrong, rtol, atol, options)


def _bisect_file(
    path: str,
    inputs: Sequence[torch.Tensor],
    is_wrong: Callable[[Outputs], bool] | None,
    rtol: float,
    atol: float,
    options: dict[str, Any],
) -> Culprit | None:
    search = _Search(path, inputs, options)
    plain, _ = search.run("0")
    wrong = is_wrong or _differs(rtol, atol, plain)
    if wrong(plain):
        return Culprit("", "", "", "", "", "0", search.builds)
    outputs, report = search.run("-1")
    if not wrong(outputs):
        return None
    runs = [row for row in report["passes"] if row["is_optional"]]

    def after(limit: str) -> bool:
        found = wrong(search.run(limit)[0])
        _log.info("bisect: %s after %s", "wrong" if found else "right", limit)
        return found

    whole = 1 + bisect_left(range(1, len(runs)), True, key=lambda count: after(str(count)))
    rewrites = runs[whole - 1]["rewrites"]
    first = 1 + bisect_left(range(1, rewrites), True, key=lambda count: after(f"{whole - 1}.{count}"))
    limit = f"{whole - 1}.{first}"
    last = search.run(limit)[1]["last_rewrite"]
    return Culprit(last["pass"], last["rule"], last["node"], last["op"], last["source"], limit, search.builds)
