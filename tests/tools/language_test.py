# SPDX-License-Identifier: Apache-2.0
"""check_language must find each phrase that it lists, in every kind of text, and long commit subjects."""

import subprocess

import check_language
import pytest

BAD = [
    ("// One entry per node, one a value.", "one a value"),
    ("// Runs once a checkpoint.", "once a checkpoint"),
    ("x = 1  # this is no number", "is no number"),
    ("The plan is made again.", "made again"),
    ("Composites are taken apart.", "taken apart"),
    ("the functional twin of add_", "functional twin"),
    ("spelled-out attention", "spelled-out attention"),
    ("// Circular: circular functions", "circular function"),
    ('raise ValueError("a stretch of nodes")', "stretch"),
    ("ranges: least..typical..most", "least..typical"),
    ("  // Of the engine: its weights.", "// Of the engine"),
    ("// The sizes are one\n// a value.", "one // a value"),
    ("# It is\n# no tensor.", "is # no tensor"),
    ("/* It is\n * no tensor. */", "is * no tensor"),
]


@pytest.mark.parametrize(("text", "phrase"), BAD)
def test_bad_phrases_are_found(text, phrase):
    found = check_language.check_text("a.cpp", "int x;\n" + text + "\n")
    assert [item.text for item in found] == [phrase]
    assert found[0].where == "a.cpp:2"


GOOD = [
    "// One entry per node.",
    "// There is no number; where is no longer a question.",
    "// Once a step has bound the symbol, it is known.",
    "// It is no longer used.",
    "// Of these, two remain.",
    'const char* text = "one a day";  // language: ok',
]


@pytest.mark.parametrize("text", GOOD)
def test_other_text_passes(text):
    assert check_language.check_text("a.cpp", text + "\n") == []


def run_git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def commit(folder, *subjects):
    for subject in subjects:
        run_git(folder, "commit", "--allow-empty", "-m", subject)


@pytest.fixture
def tree(tmp_path):
    run_git(tmp_path, "init", "-b", "main")
    commit(tmp_path, "x" * 73, *[f"Change {i}" for i in range(check_language.RECENT_COMMITS)])
    return tmp_path


def long_subjects(folder):
    return [item.text for item in check_language.check_subjects(check_language.new_commits(folder))]


def test_subjects_of_recent_commits_are_checked(tree):
    assert long_subjects(tree) == []
    commit(tree, "y" * 72, "z" * 73)
    assert long_subjects(tree) == ["z" * 73]


def test_subjects_of_a_branch_are_checked(tree):
    commit(tree, "m" * 80)
    run_git(tree, "checkout", "-b", "work")
    commit(tree, "b" * 74, *["Short"] * (check_language.RECENT_COMMITS + 1))
    assert long_subjects(tree) == ["b" * 74]


def test_a_fresh_clone_is_checked_like_its_origin(tree, tmp_path_factory):
    run_git(tree, "checkout", "-b", "work")
    commit(tree, "c" * 75)
    clone = tmp_path_factory.mktemp("clone")
    run_git(clone, "clone", "--branch", "work", str(tree), "tree")
    assert long_subjects(clone / "tree") == ["c" * 75]


def test_files_without_a_checkout_are_checked(tmp_path, monkeypatch, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("It is no page.\n")
    monkeypatch.setattr("sys.argv", ["check_language.py", "--root", str(tmp_path)])
    assert check_language.main() == 1
    assert "docs/a.md:1: 'is no page'" in capsys.readouterr().err
    (tmp_path / "docs" / "a.md").write_text("It is not a page.\n")
    assert check_language.main() == 0
