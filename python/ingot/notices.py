# SPDX-License-Identifier: Apache-2.0
"""What the logger `ingot` says about a finished build."""

from __future__ import annotations

import logging
from collections.abc import Sequence

_log = logging.getLogger("ingot")


def warn_of_entries_without_node(engines: Sequence[Sequence[str]]) -> None:
    """Entries of disable_passes whose nodes no engine has. engines: of each engine, those that it has no node for."""
    first, *others = engines or [[]]
    for entry in first:
        if all(entry in other for other in others):
            _log.warning(
                'disable_passes: no engine has a node for "%s"; the report has the names of nodes', entry
            )
