# SPDX-License-Identifier: Apache-2.0
"""What is said about a finished build: by the logger `ingot`, or as an error."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ingot.errors import UserError

_log = logging.getLogger("ingot")


def warn_of_entries_without_node(engines: Sequence[Sequence[str]]) -> None:
    """Entries of disable_passes whose nodes no engine has. engines: of each engine, those that it has no node for."""
    first, *others = engines or [[]]
    for entry in first:
        if all(entry in other for other in others):
            _log.warning(
                'disable_passes: no engine has a node for "%s"; the report has the names of nodes', entry
            )


def require_used_choices(builds: Sequence[Mapping[str, Any]]) -> None:
    """UserError for the first pattern of backend_of that fits no node of any engine. builds: what each engine's build reported."""
    first, *others = [build["unused_backend_of"] for build in builds] or [[]]
    for pattern in first:
        if all(pattern in other for other in others):
            raise UserError(
                f'option "backend_of" names "{pattern}", but no node of an engine is called so, and no operator',
                code="INGOT-U002",
                advice="the report has the names of nodes; patterns may have * and ?",
            )
