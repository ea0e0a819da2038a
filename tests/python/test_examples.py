# SPDX-License-Identifier: Apache-2.0
"""The worked examples run, and their engines compute what eager computes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_segment_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "segment_anything"))
    from segment import segment

    rows = segment(small=True, runs=1)
    sys.modules.pop("segment")
    assert list(rows) == ["ImageEncoder", "MaskDecoder"]
    assert all(difference < 1e-4 for _, _, difference in rows.values())
