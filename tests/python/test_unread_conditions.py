# SPDX-License-Identifier: Apache-2.0
"""Sizes on which a result without readers depends are not a condition of calls."""

from __future__ import annotations

import ingot
import pytest
import torch

UNREAD = {
    "squeeze": lambda x: (torch.unique(x).squeeze(0), torch.unique(x) + 1)[1],
    "chain": lambda x: (torch.unique(x).squeeze(0).mul(2).abs(), x + 1)[1],
    "read": lambda x: torch.unique(x).squeeze(0) + 1,
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_condition_of_what_nothing_reads(name: str) -> None:
    """A program has the nodes that its results do not need; eager runs them for any size."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return UNREAD[name](x)

    x = torch.tensor([1, 1, 2, 3])
    program = torch.export.export(Model(), (x,))
    for compiled in (ingot.build(program), ingot.dynamo.compile(program)):
        assert torch.equal(compiled(x), Model()(x))
        one = torch.tensor([4, 4, 4, 4])
        if name == "read":  # of one row it would have no dim
            with pytest.raises(ingot.UserError, match="INGOT-U312"):
                compiled(one)
        else:
            assert torch.equal(compiled(one), Model()(one))
