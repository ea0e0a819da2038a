# SPDX-License-Identifier: Apache-2.0
"""Sentences of which some mean the same."""

SENTENCES = (
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "Somebody has lunch.",
    "The new engine starts without a sound.",
    "A child is held by a young woman.",
)
