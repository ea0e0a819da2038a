# SPDX-License-Identifier: Apache-2.0
"""Counters of engines, for servers that expose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingot import _core
from ingot.engine import Engine
from ingot.errors import require


def metrics(engines: Mapping[str, Any] | None = None) -> str:
    """Text for Prometheus (exposition format 0.0.4): what engines did, by the names given here, and what builds of this process found in
    its cache.

    Values are engines, or what `ingot.compile` or `torch.compile` returned (the latter after its first call): if that has several engines,
    they are named "name.0", "name.1". Counts begin when an engine is loaded; a forked child goes on from its parent's. Arguments that
    are rejected before an engine is called (INGOT-U300, U308, U309) are not counted.
    """
    given = {} if engines is None else engines
    require(given, Mapping, "metrics takes a dict of names and engines")
    names: list[str] = []
    cores: list[Any] = []
    for name, value in given.items():
        require(name, str, "the name of an engine must be a str")
        own = _cores_of(value)
        names += [name] if len(own) == 1 else [f"{name}.{number}" for number in range(len(own))]
        cores += own
    return _core.metrics_text(names, cores)


def _cores_of(value: Any) -> list[Any]:
    if isinstance(value, Engine):
        return [value._core]
    from ingot.front import report  # with torch

    return list(report(value).engines)
