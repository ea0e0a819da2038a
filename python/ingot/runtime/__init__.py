# SPDX-License-Identifier: Apache-2.0
"""How compiled modules run on a GPU."""

from typing import Any

from ingot.peer_names import missing
from ingot.runtime.cuda_graphs import CudaGraphs, enable_cudagraphs
from ingot.runtime.streaming import WeightStreaming, weight_streaming

__all__ = ["CudaGraphs", "WeightStreaming", "enable_cudagraphs", "weight_streaming"]


def __getattr__(name: str) -> Any:
    raise missing("ingot.runtime", name)
