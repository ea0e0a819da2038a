# SPDX-License-Identifier: Apache-2.0
"""All models that show how much of what users bring runs: architectures of transformers, and plain ones."""

from __future__ import annotations

import torch

from models import architectures, plain_sequence, plain_vision
from models.architectures import Architecture

PLAIN = plain_vision.MODELS | plain_sequence.MODELS
NAMES = [*architectures.table(), *PLAIN]
CAUSES = {name: row["cause"] for name, row in architectures.table().items() if row["cause"]}


def build(name: str) -> Architecture:
    """With seeded weights, in evaluation mode, without gradients."""
    if name not in PLAIN:
        return architectures.architecture(name)
    make, inputs = PLAIN[name]
    torch.manual_seed(0)
    return architectures.prepared(make(), inputs)
