# SPDX-License-Identifier: Apache-2.0
"""What a caller says of one input: its sizes, and its dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ingot.errors import UserError


class Input:
    """One tensor input.

    Either `shape` (all dims fixed), or `min_shape`, `opt_shape` and `max_shape`: dims where least and most differ are
    dynamic within that range, and the engine is optimized for `opt_shape`. torch.export wants example sizes of 2 or
    more for dynamic dims: the example takes `opt_shape`, raised to 2 where the range allows.

    name: which argument of the model's forward; by default inputs go by position.
    """

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        *,
        min_shape: Sequence[int] | None = None,
        opt_shape: Sequence[int] | None = None,
        max_shape: Sequence[int] | None = None,
        dtype: torch.dtype = torch.float32,
        name: str = "",
    ) -> None:
        if shape is not None:
            min_shape = opt_shape = max_shape = shape
        if min_shape is None or max_shape is None:
            raise UserError("an Input needs a shape, or min_shape and max_shape", code="INGOT-U006")
        self.min_shape = tuple(min_shape)
        self.max_shape = tuple(max_shape)
        self.opt_shape = tuple(opt_shape if opt_shape is not None else max_shape)
        self.dtype = dtype
        self.name = name
        ordered = zip(self.min_shape, self.opt_shape, self.max_shape, strict=False)
        same_rank = len(self.min_shape) == len(self.opt_shape) == len(self.max_shape)
        if not same_rank or not all(low <= typical <= high for low, typical, high in ordered):
            raise UserError(
                f"min_shape {self.min_shape} <= opt_shape {self.opt_shape} <= max_shape {self.max_shape} does not hold",
                code="INGOT-U006",
            )

    @property
    def is_dynamic(self) -> bool:
        return self.min_shape != self.max_shape

    def example(self) -> torch.Tensor:
        """A tensor of the typical size: zeros for integers and bools, seeded noise otherwise."""
        sizes = [
            size if low == high else max(size, min(2, high))
            for size, low, high in zip(self.opt_shape, self.min_shape, self.max_shape, strict=True)
        ]
        if not self.dtype.is_floating_point:
            return torch.zeros(sizes, dtype=self.dtype)
        generator = torch.Generator().manual_seed(0)
        return torch.randn(sizes, generator=generator).to(self.dtype)

    def dynamic_dims(self) -> dict[int, Any]:
        """torch.export's description of the dynamic axes; equal sizes become one symbol where the model needs it."""
        chosen = {}
        for axis, (low, high) in enumerate(zip(self.min_shape, self.max_shape, strict=True)):
            if low != high:
                chosen[axis] = torch.export.Dim.DYNAMIC(min=low, max=high)
        return chosen

    def profile(self, name: str) -> str:
        """The text of the compiler's `shapes` option."""
        triples = zip(self.min_shape, self.opt_shape, self.max_shape, strict=True)
        dims = [str(low) if low == high else f"{low}..{typical}..{high}" for low, typical, high in triples]
        return f"{name}:{'x'.join(dims)}"

    def __repr__(self) -> str:
        return f"Input(min_shape={self.min_shape}, opt_shape={self.opt_shape}, max_shape={self.max_shape}, dtype={self.dtype})"


def as_input(value: Any) -> Input | torch.Tensor:
    if isinstance(value, (Input, torch.Tensor)):
        return value
    raise UserError(
        f"an input is an ingot.Input or a tensor, not a {type(value).__name__}", code="INGOT-U006"
    )
