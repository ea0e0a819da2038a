# SPDX-License-Identifier: Apache-2.0
"""How compiled modules run on a GPU."""

from ingot.runtime.cuda_graphs import CudaGraphs, enable_cudagraphs
from ingot.runtime.streaming import WeightStreaming, weight_streaming

__all__ = ["CudaGraphs", "WeightStreaming", "enable_cudagraphs", "weight_streaming"]
