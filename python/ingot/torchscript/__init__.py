# SPDX-License-Identifier: Apache-2.0
"""TorchScript modules, functions and files as modules that torch.export can trace (docs/design/019-front-ends.md)."""
