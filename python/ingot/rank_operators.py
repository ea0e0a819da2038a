# SPDX-License-Identifier: Apache-2.0
"""ingot::size_of_rank: a number of which each rank has its own (docs/design/043).

`sizes` is a row-major table over this rank's positions in the groups, which have `ranks` ranks each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ingot import ranks as torch_ranks

_library = torch.library.Library("ingot", "FRAGMENT")
_library.define("size_of_rank(str[] group_names, int[] ranks, int[] sizes) -> SymInt")


@torch.library.impl(_library, "size_of_rank", "CompositeExplicitAutograd")
def _size_of_rank(group_names: Sequence[str], ranks: Sequence[int], sizes: Sequence[int]) -> int:
    """Where torch runs it: by torch's groups."""
    return torch_ranks.size_of_rank(group_names, ranks, sizes)
