# SPDX-License-Identifier: Apache-2.0
"""Products without sums keep the signs of zeros, which a division shows: nothing is added to them."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from small_models import Function

_PRODUCTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "rows and columns": lambda x, y: torch.einsum("...i,...j->...ij", x, y),
    "elements": lambda x, y: torch.einsum("ij,ij->ij", x, y),
    "one that is shared": lambda x, y: torch.einsum("ij,kj->kij", x, y),
    "all": lambda x, y: torch.einsum("ij,kl->ijkl", x, y),
    "three": lambda x, y: torch.einsum("i,j,k->ijk", x[0], y[0], x[1]),
    "broadcast": lambda x, y: torch.einsum("bi,bj->bij", x, y[:1]),
    "a scalar": lambda x, y: torch.einsum("ij,->ji", x, y[1, 0]),
    "diagonal": lambda x, y: torch.einsum("ii,j->ij", x[:, :2], y[0]),
    "outer": lambda x, y: torch.outer(x[0], y[1]),
    "kron": torch.kron,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", _PRODUCTS)
@torch.no_grad()
def test_products_without_sums(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, -0.0, 1.0], [-2.0, 0.0, -0.0]], dtype=dtype)
    y = torch.tensor([[-1.0, 2.0, 0.0], [-0.0, 3.0, -3.0]], dtype=dtype)
    model = Function(_PRODUCTS[name])
    compiled = ingot.compile(model, inputs=[x, y], require_full_compilation=True)
    for operands in ((x, y), (y, x), (-x, y)):
        result, expected = compiled(*operands), model(*operands)
        assert torch.equal(result, expected)
        assert torch.equal(result.signbit(), expected.signbit())
