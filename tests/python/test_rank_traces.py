# SPDX-License-Identifier: Apache-2.0
"""What ranks compare of their traces."""

from __future__ import annotations

import torch
from ingot import rank_traces
from ingot.rank_bodies import Body


def _rows(device: torch.device) -> list[rank_traces.Row]:
    graph = torch.fx.Graph()
    made = graph.call_function(torch.ops.aten.arange.default, (4,), {"device": device, "pin_memory": False})
    made.meta["val"] = torch.empty(4, dtype=torch.int64)
    graph.output((made,))
    return rank_traces._rows([Body(torch.fx.GraphModule({}, graph))], [])


def test_each_rank_makes_tensors_on_its_own_gpu() -> None:
    assert _rows(torch.device("cuda", 0)) == _rows(torch.device("cuda", 1))
    assert _rows(torch.device("cuda", 0)) != _rows(torch.device("cpu"))
