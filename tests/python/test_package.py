# SPDX-License-Identifier: Apache-2.0
"""The public surface of the package: its names, and the pages on its errors."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import IntEnum
from pathlib import Path

import ingot
import pytest
from ingot.kinds import ArgumentKind, InputRole, OutputRole, ValueKind

ROOT = Path(__file__).parents[2]
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


def test_files_are_built_without_torch() -> None:
    script = "import sys; sys.modules['torch'] = None; import ingot; print(ingot.build(sys.argv[1], optimization_level=1).inputs)"
    environment = {"PYTHONPATH": str(Path(ingot.__file__).parents[1])}
    command = [sys.executable, "-c", script, ROOT / "tests/data/pt2/pair.pt2"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Port(" in done.stdout


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [(ValueKind, "VALUE"), (ArgumentKind, "ARGUMENT"), (InputRole, "INPUT"), (OutputRole, "OUTPUT")],
)
def test_kinds_have_the_numbers_of_the_c_api(kind: type[IntEnum], prefix: str) -> None:
    header = (ROOT / "include/ingot/build.h").read_text()
    numbers = re.findall(rf"\bINGOT_{prefix}_(\w+) = (\d+)", header)
    assert {name: int(number) for name, number in numbers} == {each.name: each.value for each in kind}
