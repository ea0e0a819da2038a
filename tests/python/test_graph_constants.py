# SPDX-License-Identifier: Apache-2.0
"""Tensors that the graphs of branches, loops and scans hold themselves, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from whole_models import check, each_way


class _Constants(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        y = torch.cond(
            x.sum() > 0,
            lambda x: torch.cond(
                x[0, 0] > 2, lambda x: x * torch.tensor(2), lambda x: x - torch.tensor(0.5), (x,)
            ),
            lambda x: x.index_put((torch.tensor([0, 2]),), torch.tensor([7.0, 8.0]).unsqueeze(1)),
            (x,),
        )
        z = while_loop(
            lambda i, y: i < torch.tensor([4])[0],
            lambda i, y: (i + torch.tensor(1), y * torch.tensor([0.5, 1.0, 2.0, 3.0])),
            (torch.tensor(0), y),
        )[1]
        c = torch.cond(z.sum() > 0, lambda z: (z * torch.tensor(1j)).abs(), lambda z: z.abs(), (z,))
        return c, scan(lambda s, row: (s * torch.tensor(0.5) + row, s + torch.tensor([1, 2, 3, 4])), x[0], z)[
            1
        ]


@each_way
def test_constants_of_graphs(way: Callable[..., Any]) -> None:
    check(_Constants(), way, [(torch.full((3, 4), value),) for value in (1.0, -1.0, 3.0)])
