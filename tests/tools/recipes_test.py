# SPDX-License-Identifier: Apache-2.0
"""The pages on adding an operator, a pass and a kernel template quote the tree correctly, and their commands print the output shown.

A comment before a block says what the block is: `in FILE`, lines of that file; `graph FILE`, the file's whole content;
`run COMMAND`, what the command prints.
"""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from errors.inputs import INGOT

ROOT = Path(__file__).resolve().parents[2]
SANITIZED = ("asan", "tsan", "fuzz")  # builds without the CPU's compiler
PAGES = ("adding-an-operator.md", "adding-a-pass.md", "adding-a-kernel-template.md")
BLOCK = re.compile(r"^<!-- (in|graph|run) (.*?) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[tuple[str, str, str]]:
    """(page, what the comment says, text) of all pages."""
    texts = {page: (ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES}
    return [(page, *found[1:]) for page in PAGES for found in BLOCK.findall(texts[page]) if found[0] == kind]


def name(block: tuple[str, str, str]) -> str:
    return f"{block[0]}: {block[1]}"


def test_every_marked_block_is_read():
    marks = [
        line
        for page in PAGES
        for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("<!--")
    ]
    assert len(marks) == sum(len(blocks(kind)) for kind in ("in", "graph", "run"))
    assert {page for page, _, _ in blocks("in")} == {page for page, _, _ in blocks("run")} == set(PAGES)


@pytest.mark.parametrize("block", blocks("in"), ids=name)
def test_what_is_quoted_is_in_the_tree(block):
    _, file, text = block
    assert f"\n{text}" in f"\n{(ROOT / file).read_text(encoding='utf-8')}"


@pytest.mark.parametrize("block", blocks("run"), ids=name)
def test_commands_print_what_is_shown(block, tmp_path):
    page, command, expected = block
    for graph_page, file, text in blocks("graph"):
        if graph_page == page:
            (tmp_path / file).write_text(text, encoding="utf-8")
    program, *arguments = shlex.split(command)
    path = Path(INGOT) if program == "ingot" else built(program)
    done = subprocess.run([path, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = re.sub(r"^Running main.*\n", "", done.stdout)
    assert re.sub(r"\(\d+ ms total\)", "(... ms total)", printed) == expected


def built(program: str) -> Path:
    """The newest one, as trees may be built in several ways."""
    found = [path for path in ROOT.glob(f"build/*/bin/{program}") if path.parts[-3] not in SANITIZED]
    found.sort(key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"{program} is not built")
    return found[-1]
