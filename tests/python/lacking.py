# SPDX-License-Identifier: Apache-2.0
"""An operator that no engine will ever run, for the tests of what torch runs beside engines.

An operator of torch would serve only until engines learn it. This module imports torch alone, so that programs which
load saved modules in another process can import it too.
"""

from __future__ import annotations

import torch

NAME = "lacking.negated.default"


def _check(x: torch.Tensor) -> None:
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"lacking::negated: expected a floating-point tensor, not {x.dtype}")


@torch.library.custom_op("lacking::negated", mutates_args=())
def negated(x: torch.Tensor) -> torch.Tensor:
    """-x of any shape and floating-point dtype."""
    _check(x)
    return x.neg()


@negated.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    _check(x)
    return torch.empty_like(x)


negated.register_autograd(lambda _, gradient: -gradient)
