# SPDX-License-Identifier: Apache-2.0
"""ingot::size_of_rank(Tensor rank, int[] sizes) -> SymInt: an entry of a table with one size per rank (docs/design/043)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

_library = torch.library.Library("ingot", "FRAGMENT")
_library.define("size_of_rank(Tensor rank, int[] sizes) -> SymInt")


@torch.library.impl(_library, "size_of_rank", "CompositeExplicitAutograd")
def _size_of_rank(rank: torch.Tensor, sizes: Sequence[int]) -> int:
    return sizes[int(rank)]
