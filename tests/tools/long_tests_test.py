# SPDX-License-Identifier: Apache-2.0
"""tools/test_long.py leaves no test out, and goes on where it was cut off."""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import test_long
import test_parts
from test_parts import Part, Result

ROOT = Path(__file__).resolve().parents[2]


def test_each_file_is_in_one_part() -> None:
    counts = Counter(word for part in test_long.parts() for word in part.command if word.endswith(".py"))
    folders = ("python", "tools", "errors", "compatibility", "platforms", "serving")
    files = [
        path for folder in folders for path in (ROOT / "tests" / folder).rglob("*.py") if _is_collected(path)
    ]
    assert counts == {str(path): 1 for path in files}


def _is_collected(path: Path) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test")


def test_each_program_has_all_its_shards() -> None:
    names = {part.name for part in test_long.parts()}
    for program in test_long.BINARIES.glob("ingot_test_*"):
        shards = [name for name in names if re.fullmatch(rf"{program.name} \d+/\d+", name)]
        assert len(shards) == int(shards[0].rpartition("/")[2])


def test_each_part_is_in_one_shard_of_many() -> None:
    parts = list(range(17))
    assert sorted(each for k in range(1, 6) for each in parts[test_long.shard_of(f"{k}/5")]) == parts


def test_tests_that_take_hours_are_not_taken_for_hanging() -> None:
    """All of the operator database is one test, and so are 2,000 random programs."""
    assert all(int(part.variables["PYTEST_TIMEOUT"]) >= 3600 for part in test_long.parts())


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3"])
def test_wrong_shards_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected K/N"):
        test_long.shard_of(text)


def _part(folder: Path, name: str) -> Part:
    """Passes if the file NAME is there; counts its runs in NAME.runs."""
    code = f"open('{name}.runs', 'a').write('.'); open('{name}').close()"
    return Part(name, [sys.executable, "-c", f"import os; os.chdir({str(folder)!r}); {code}"], "")


def _runs(folder: Path) -> dict[str, int]:
    return {path.stem: len(path.read_text()) for path in folder.glob("*.runs")}


def test_what_passed_is_not_run_again(tmp_path: Path) -> None:
    parts, state = [_part(tmp_path, name) for name in ("good", "bad", "alone")], tmp_path / "state"
    parts[2].is_alone = True
    for name in ("good", "alone"):
        (tmp_path / name).touch()
    results = test_parts.run_all(parts, "1a", 2, state)
    assert test_parts.totals(results) == "2 passed, 0 skipped, 1 failed"
    assert test_parts.exit_status(results) == 1
    (tmp_path / "bad").touch()
    results = test_parts.run_all(parts, "1a", 2, state)
    assert test_parts.totals(results) == "3 passed, 0 skipped, 0 failed"
    assert test_parts.exit_status(results) == 0
    assert _runs(tmp_path) == {"good": 1, "bad": 2, "alone": 1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "import pytest\npytest.importorskip('a_package_that_is_not_there')",
            "0 passed, 1 skipped, 0 failed",
        ),
        ("", "0 passed, 0 skipped, 1 failed"),
    ],
    ids=["skipped", "empty"],
)
def test_a_file_of_which_nothing_ran(tmp_path: Path, body: str, expected: str) -> None:
    """It may skip all of its tests; a file without tests is an error."""
    path = tmp_path / "test_nothing.py"
    path.write_text(body)
    results = test_parts.run_all([test_parts.of_pytest(path.name, [path], {})], "1a", 1, tmp_path / "state")
    assert test_parts.totals(results) == expected


def test_other_commits_and_changed_trees_run_again(tmp_path: Path) -> None:
    parts, state = [_part(tmp_path, "good")], tmp_path / "state"
    (tmp_path / "good").touch()
    for commit in ("1a", "2b", "2b-dirty", "2b-dirty", "2b"):
        test_parts.run_all(parts, commit, 1, state)
    assert _runs(tmp_path) == {"good": 4}


def test_a_line_that_was_cut_off_is_no_result(tmp_path: Path) -> None:
    parts, state = [_part(tmp_path, "good")], tmp_path / "state"
    (tmp_path / "good").touch()
    whole = json.dumps(vars(Result("good", "1a", 1, 0, 0, 1.0)))
    state.write_text(whole[: len(whole) // 2])
    test_parts.run_all(parts, "1a", 1, state)
    test_parts.run_all(parts, "1a", 1, state)
    assert _runs(tmp_path) == {"good": 1}


def test_lines_tell_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts, state = [_part(tmp_path, name) for name in ("first", "second")], tmp_path / "state"
    for part in parts:
        (tmp_path / part.name).touch()
    rows = [Result("first", "0", 1, 0, 0, 7.0), Result("second", "0", 1, 0, 0, 600.0)]
    state.write_text("".join(json.dumps(vars(row)) + "\n" for row in rows))
    test_parts.run_all(parts, "1a", 1, state)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[1/2, about 10 min left] first: 1 passed")
    assert lines[1].startswith("[2/2, about 0 min left] second: 1 passed")
