# SPDX-License-Identifier: Apache-2.0
"""What a user sees of the package itself: its names, and the pages on its errors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import ingot
import pytest

PAGES = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
FRESH = "import sys, ingot; print(*dir(ingot)); names = [getattr(ingot, name) for name in dir(ingot)]; print(*dir(ingot))"


def test_dir_shows_public_names_before_and_after_their_import() -> None:
    environment = {"PYTHONPATH": str(Path(ingot.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", FRESH], capture_output=True, text=True, check=True, env=environment
    )
    before, after = done.stdout.splitlines()
    assert before == after
    assert sorted(before.split()) == sorted([*ingot.__all__, "__version__"])
    assert set(ingot._LAZY) <= set(ingot.__all__)


@pytest.mark.parametrize("code", ["INGOT-N001", "N001", "n001", "ingot-n001"])
def test_explain_takes_a_code_with_and_without_its_prefix(code: str) -> None:
    assert "No backend of this build" in ingot.explain(code)


def test_explain_has_a_page_of_each_code() -> None:
    pages = dict(re.findall(r"^## INGOT-(\w+)\n(.*?)\n", PAGES, re.MULTILINE))
    missing = [
        code for code, text in pages.items() if text.split(". ")[0][:40] not in (ingot.explain(code) or "")
    ]
    assert missing == []
