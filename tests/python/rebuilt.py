# SPDX-License-Identifier: Apache-2.0
"""Factorizations as what has one result: the product of the factors, and the products that show that they are orthogonal."""

from __future__ import annotations

import torch
from torch import linalg


def joined(*parts: torch.Tensor) -> torch.Tensor:
    return torch.cat([part.flatten(-2) for part in parts], -1)


def rebuilt_svd(x: torch.Tensor, full: bool = False) -> torch.Tensor:
    u, s, vh = linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    again = (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]
    return joined(again, u.mH @ u, vh @ vh.mH, s.unsqueeze(-2).to(x.dtype))
