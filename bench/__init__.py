# SPDX-License-Identifier: Apache-2.0
"""Compares Ingot with its peers: one process per engine, runs interleaved in rounds, ratios printed."""
