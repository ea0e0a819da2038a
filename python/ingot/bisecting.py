# SPDX-License-Identifier: Apache-2.0
"""Which rewrite of a pass makes a result differ: `print(ingot.bisect(model, inputs))`."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch.utils import _pytree

from ingot import _core, compat
from ingot.engine import Engine
from ingot.errors import UserError, require
from ingot.fitting import given_inputs
from ingot.front import export
from ingot.paths import path_text
from ingot.settings import Settings

_log = logging.getLogger("ingot")

Outputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Culprit:
    """The first rewrite after which the result is wrong.

    pass_name, rule ("" if the pass has none), node, op and source (the line of the model) say what was rewritten; all are "" if
    the result is wrong before any optional pass. limit: the option bisect_passes of that build; builds: how many were made.
    is_only_one: a build with all other passes and rewrites is right.
    """

    pass_name: str
    rule: str
    node: str
    op: str
    source: str
    limit: str
    builds: int
    is_only_one: bool

    @property
    def disable(self) -> str:
        """The entry of disable_passes that leaves the node as it is."""
        return f"{self.pass_name}{'.' + self.rule if self.rule else ''}@{self.node}" if self.pass_name else ""

    def __str__(self) -> str:
        if not self.pass_name:
            return f"wrong before any optional pass ({self.builds} builds): kernels or passes of level 0 are the cause"
        rule = f", rule {self.rule}" if self.rule else ""
        then = (
            "the result is right then" if self.is_only_one else "the result is still wrong then: search again"
        )
        return (
            f'the pass {self.pass_name}{rule} at "{self.node}" ({self.op}) {self.source}\n'
            f"  found in {self.builds} builds; bisect_passes={self.limit} is the first that is wrong; "
            f"disable_passes={self.disable} leaves that node as it is: {then}"
        )


class _Judge:
    """Whether an engine's outputs are wrong. Without a reference those of the first engine are it."""

    def __init__(
        self,
        inputs: Sequence[Any],
        is_wrong: Callable[[Outputs], bool] | None,
        reference: Sequence[torch.Tensor] | None,
        rtol: float,
        atol: float,
    ) -> None:
        self._inputs, self._is_wrong = inputs, is_wrong
        self._reference = None if reference is None else tuple(reference)
        self._rtol, self._atol = rtol, atol
        self._builds = 0

    def __call__(self, built: _core.Engine) -> bool:
        inputs = _pytree.tree_map_only(torch.Tensor, torch.clone, tuple(self._inputs))
        outputs = tuple(_pytree.tree_leaves(Engine(built)(*inputs)))
        self._builds += 1
        if self._is_wrong is not None:
            wrong = bool(self._is_wrong(outputs))
        else:
            if self._reference is None:
                self._reference = outputs
            wrong = not self._is_near(outputs)
        _log.info("bisect: build %d is %s", self._builds, "wrong" if wrong else "right")
        return wrong

    def _is_near(self, outputs: Outputs) -> bool:
        return len(outputs) == len(self._reference) and all(map(self._is_near_one, outputs, self._reference))

    def _is_near_one(self, value: Any, right: Any) -> bool:
        if not isinstance(value, torch.Tensor):
            return value == right
        right = torch.as_tensor(right)
        if value.shape != right.shape:
            return False
        wide = torch.complex128 if value.is_complex() or right.is_complex() else torch.float64
        near, far = value.cpu().to(wide), right.cpu().to(wide)
        return torch.allclose(near, far, rtol=self._rtol, atol=self._atol, equal_nan=True)


def _check(model: Any, inputs: Any, is_wrong: Any, reference: Any, tolerances: Mapping[str, Any]) -> None:
    kinds = (str, os.PathLike, torch.nn.Module, torch.export.ExportedProgram)
    require(model, kinds, "bisect takes a torch.nn.Module, an ExportedProgram or the path of a .pt2 file")
    given_inputs(inputs, None)
    if is_wrong is not None:
        require(is_wrong, Callable, "is_wrong must be a function of the outputs")
    if reference is not None:
        require(reference, (list, tuple), "reference must be a list of the right outputs")
        for value in reference:
            require(value, (torch.Tensor, int, float, complex), "an output of reference must be a tensor")
    for name, value in tolerances.items():
        if not isinstance(value, Real) or not value >= 0:
            raise UserError(f"{name} must be a number of at least 0, not {value!r}", code="INGOT-U002")


def bisect(
    model: torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str],
    inputs: Sequence[Any],
    *,
    is_wrong: Callable[[Outputs], bool] | None = None,
    reference: Sequence[torch.Tensor] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    **options: Any,
) -> Culprit | None:
    """Finds the pass, then the node, that makes a result wrong; None if the result of all passes is right.

    model: a module, an exported program or a .pt2 file, which has to become one engine. inputs: tensors on the host, numbers,
    None, and trees of these, by position.
    is_wrong: judges the outputs (a flat tuple of tensors) of a build. Without it, a result is wrong that differs from `reference`
    by more than atol + rtol * |value|. reference: the right outputs, such as those of eager in f64; default: those of the engine
    without optional passes. options: as for `ingot.build`; bisect_passes is the limit that the search stays below.

    Builds about log2(passes) + log2(rewrites of one) engines, and two that check what was found; each is logged at level info.
    Assumes that a result that is wrong after some rewrites stays wrong after more. UserError (INGOT-U032) if results contradict
    each other, and what `ingot.build` raises.
    """
    settings = Settings.parse(options)
    _check(model, inputs, is_wrong, reference, {"rtol": rtol, "atol": atol})
    judge = _Judge(inputs, is_wrong, reference, rtol, atol)
    if isinstance(model, (str, os.PathLike)):
        return _bisect_file(path_text(model), settings, judge)
    program = export(model, tuple(inputs), {}) if isinstance(model, torch.nn.Module) else model
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt2")
        with compat.tracing():
            torch.export.save(program, path)
        return _bisect_file(path, settings, judge)


def _bisect_file(path: str, settings: Settings, judge: _Judge) -> Culprit | None:
    found = json.loads(
        _core.bisect_pt2(path, settings.compiler, settings.progress, settings.custom_engine_cache, judge)
    )
    if found["outcome"] == "right":
        return None
    if found["outcome"] == "wrong_before_passes":
        return Culprit("", "", "", "", "", "0", found["builds"], is_only_one=False)
    return Culprit(
        found["pass"],
        found["rule"],
        found["node"],
        found["op"],
        found["source"],
        found["bisect_passes"],
        found["builds"],
        is_only_one=found["is_right_without"],
    )
