# SPDX-License-Identifier: Apache-2.0
"""Every error code has one page in docs/errors.md, in order, and every page belongs to a code that something raises."""

import ast
import builtins
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r'"(INGOT-[A-Z]\d+)"')
ERRORS = ("UserError", "UnsupportedError", "InternalError", "DeviceError")
SOURCES = (("include", "*.h"), ("src", "*.cpp"), ("src", "*.h"), ("python", "*.cpp"), ("python", "*.py"))


def used_codes() -> set[str]:
    files = [path for folder, pattern in SOURCES for path in (ROOT / folder).rglob(pattern)]
    return {code for path in files for code in CODE.findall(path.read_text(encoding="utf-8"))}


def documented_codes() -> list[str]:
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    return re.findall(r"^## (INGOT-[A-Z]\d+)$", text, re.MULTILINE)


def errors_without_code(path: Path) -> list[str]:
    """Lines that make one of the package's errors, and name no code in their arguments."""
    calls = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    ]
    made = [call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) in ERRORS]
    return [
        f"{path.name}:{call.lineno}" for call in made if "code" not in [word.arg for word in call.keywords]
    ]


def other_errors(path: Path) -> set[str]:
    """Names of foreign exceptions that a file raises itself."""
    raised = [
        node.exc
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise)
    ]
    names = {
        each.func.id for each in raised if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }
    return {name for name in names - set(ERRORS) if name.endswith("Error") and hasattr(builtins, name)}


def test_every_error_of_the_python_package_has_a_code():
    files = sorted((ROOT / "python" / "ingot").glob("*.py"))
    assert [line for path in files for line in errors_without_code(path)] == []
    # For attributes that are not there, and for a caller in the same file that catches it.
    allowed = {
        "calling.py": {"AttributeError"},
        "guards.py": {"ValueError"},
    }
    assert {path.name: found for path in files if (found := other_errors(path))} == allowed


def test_every_code_has_a_page():
    assert used_codes() - set(documented_codes()) == set()


def test_every_page_has_a_code():
    assert set(documented_codes()) - used_codes() == set()


def test_pages_are_unique_and_sorted():
    codes = documented_codes()
    assert codes == sorted(codes, key=lambda code: ("IUND".index(code[6]), code))
