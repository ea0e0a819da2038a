# SPDX-License-Identifier: Apache-2.0
"""Constants stored per rank, for rank="all", of which the program takes those of its rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from ingot import compat
from ingot.rank_bodies import Body
from ingot.rank_places import Places, Vector
from ingot.rank_positions import Calls
from ingot.rank_sizes import new_size

aten = torch.ops.aten


class Constants:
    """Those of a graph, ahead of all other nodes; in a branch they come from the graph around it."""

    def __init__(
        self,
        body: Body,
        first: Node,
        fake: Any,
        device: torch.device,
        places: Places,
        outer: Constants | None,
    ) -> None:
        """device: of the graph's tensors."""
        self._body, self._first, self._places, self._outer = body, first, places, outer
        self._fake, self._device = fake, device
        self._call = Calls(first, fake)
        self._count = 0
        self._rank: Node | None = None

    @property
    def ranks(self) -> int:
        """How many show their traces."""
        return self._places.count

    def of(self, values: Vector) -> Node:
        """This rank's entry, a tensor without dims."""
        dtype = torch.int64 if all(isinstance(value, int) for value in values) else torch.float64
        with compat.with_real_tensors():
            table = torch.tensor(values, dtype=dtype)
        return self.own_part(table, [])

    def own_part(self, table: torch.Tensor, shape: Sequence[int]) -> Node:
        if self._outer is not None:
            return self._body.lifted(self._outer.own_part(table, shape))
        own = self._call(aten.index_select.default, self._constant(table), 0, self._own_rank())
        return self._call(aten.view.default, own, list(shape))

    def _constant(self, data: torch.Tensor) -> Node:
        while hasattr(self._body.module, name := f"_of_ranks_{self._count}"):
            self._count += 1
        with compat.with_real_tensors():
            data = data.to(self._device)
        self._body.module.register_buffer(name, data)
        with self._body.module.graph.inserting_before(self._first):
            node = self._body.module.graph.get_attr(name)
        node.meta["val"] = self._fake.from_tensor(data, static_shapes=True)
        return node

    def _own_rank(self) -> Node:
        """A tensor of one integer."""
        if self._rank is None:
            with self._first.graph.inserting_before(self._first):
                number = self._first.graph.call_function(
                    torch.ops.ingot.size_of_rank.default, self._places.table(self._places.representatives())
                )
            number.meta["val"] = new_size(self._fake)
            self._rank = self._call(aten.full.default, [1], number, dtype=torch.int64, device=self._device)
        return self._rank
