# SPDX-License-Identifier: Apache-2.0
"""The models that tests and benchmarks share: real weights from a package, or seeded random weights from configurations."""

from models.registry import MODELS, Case, build

__all__ = ["MODELS", "Case", "build"]
