# SPDX-License-Identifier: Apache-2.0
"""Static quantization to 8 bits: calibration, and programs with quantize and dequantize operators."""
