# SPDX-License-Identifier: Apache-2.0
"""What tests of engines for GPUs run on: this machine's GPU, or none; then engines are built for an H100, and not run."""

from __future__ import annotations

import os

import pytest
import torch
from ingot.devices import architecture

HAS_GPU = torch.cuda.is_available()
DEVICE = f"cuda:{architecture()}" if HAS_GPU else "cuda:sm_90a"

needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
needs_nvrtc = pytest.mark.skipif(not os.environ.get("INGOT_NVRTC"), reason="there is no NVRTC")
