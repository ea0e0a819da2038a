# SPDX-License-Identifier: Apache-2.0
"""How compiled modules run on a GPU."""

from ingot.runtime.cuda_graphs import CudaGraphs, enable_cudagraphs

__all__ = ["CudaGraphs", "enable_cudagraphs"]
