# SPDX-License-Identifier: Apache-2.0
"""Modules whose dtypes and devices are those of a build."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ingot.errors import UserError


class FixedModule(torch.nn.Module):
    """Rejects conversions (`half()`, `to(dtype)`, `to(device)`), which would leave its engines as they are."""

    _values: Mapping[str, torch.Tensor]  # of its state dict

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> torch.nn.Module:
        for dtype, device in dict.fromkeys((value.dtype, value.device) for value in self._values.values()):
            result = fn(torch.empty(0, dtype=dtype, device=device))
            if result.dtype != dtype or _place(result.device) != _place(device):
                raise UserError(
                    f"a compiled module cannot be converted from {dtype} on {device} to {result.dtype} on {result.device}: "
                    "its engines have the dtypes and devices that they were built for",
                    code="INGOT-U337",
                    advice="convert the model, and compile it again",
                )
        return super()._apply(fn, recurse)


def _place(device: torch.device) -> tuple[str, int]:
    return device.type, device.index or 0
