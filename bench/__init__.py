# SPDX-License-Identifier: Apache-2.0
"""Ingot beside its peers: every engine in a process of its own, runs interleaved in rounds, ratios printed."""
