# SPDX-License-Identifier: Apache-2.0
"""Every error code has one page in docs/errors.md, in order, and every page belongs to a code that something raises."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r'"(INGOT-[A-Z]\d+)"')
SOURCES = (("include", "*.h"), ("src", "*.cpp"), ("src", "*.h"), ("python", "*.cpp"), ("python", "*.py"))


def used_codes() -> set[str]:
    files = [path for folder, pattern in SOURCES for path in (ROOT / folder).rglob(pattern)]
    return {code for path in files for code in CODE.findall(path.read_text(encoding="utf-8"))}


def documented_codes() -> list[str]:
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    return re.findall(r"^## (INGOT-[A-Z]\d+)$", text, re.MULTILINE)


def test_every_code_has_a_page():
    assert used_codes() - set(documented_codes()) == set()


def test_every_page_has_a_code():
    assert set(documented_codes()) - used_codes() == set()


def test_pages_are_unique_and_sorted():
    codes = documented_codes()
    assert codes == sorted(codes, key=lambda code: ("IUND".index(code[6]), code))
