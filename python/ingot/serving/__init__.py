# SPDX-License-Identifier: Apache-2.0
"""Engines in model servers: `ingot.serving.ray`, `ingot.serving.mlserver` and `ingot.serving.triton`, each for the server that it is named
after, which is an extra of the package; and the part that they share, `Model` (docs/servers.md).
"""

from ingot.serving.axis import BatchAxis
from ingot.serving.model import Model

__all__ = ["BatchAxis", "Model"]
