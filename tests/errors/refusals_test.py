# SPDX-License-Identifier: Apache-2.0
"""Bad inputs: each .toml file below this folder is one, with the exit status and the whole message that it must give.

what      what is wrong
files     text files of the working folder, by name
made      binary ones, by a recipe of inputs.py
command   of the command line, status (1 unless given) and message: all that stderr holds behind progress
          ({host} in it: what this processor has); with --json also what stdout says of it
largest   the most bytes that a file may get, as on a disk that is full
code      instead, for Python: statements, and error: the class of the exception whose text is `message`

Rejected inputs leave no files behind and print no result.
"""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from inputs import INGOT, host_features, make_file

FOLDER = Path(__file__).parent
LONGEST_PHASE = 20


def read_cases(kind: str) -> list:
    paths = sorted(FOLDER.glob("*/*.toml"))
    cases = [(path, tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths]
    return [pytest.param(case, id=f"{path.parent.name}/{path.stem}") for path, case in cases if kind in case]


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture
def folder(request, tmp_path, cache, monkeypatch) -> Path:
    """The working folder, with the files of the case."""
    case = request.getfixturevalue("case")
    for name, text in case.get("files", {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, recipe in case.get("made", {}).items():
        make_file(tmp_path / name, recipe, cache)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listing(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_size) for path in folder.rglob("*")}


def limit_files(size: int) -> None:
    """Writing more fails, with an error instead of a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def message_of(stderr: str) -> str:
    """The text that follows the names of phases in progress lines."""
    lines = stderr.splitlines()
    while lines and not lines[0].startswith("ingot: ") and len(lines[0]) <= LONGEST_PHASE:
        lines.pop(0)
    return "\n".join(lines)


@pytest.mark.parametrize("case", read_cases("command"))
def test_command_is_refused(case, folder, cache):
    before = listing(folder)
    done = subprocess.run(
        [INGOT, *shlex.split(case["command"])],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
        preexec_fn=(lambda: limit_files(case["largest"])) if "largest" in case else None,
    )
    expected = case["message"].strip()
    if "{host}" in expected:
        features = host_features(cache)
        if "amx" in features and "fp16" in features:
            pytest.skip("this processor has all that an engine may need")
        expected = expected.replace("{host}", features)
    assert message_of(done.stderr) == expected
    assert done.returncode == case.get("status", 1)
    if "--json" in case["command"]:
        error = json.loads(done.stdout)["error"]
        assert error["status"] == done.returncode
        assert error["message"] in expected
        assert error.get("code", "") in expected
    else:
        assert done.stdout == ""
    assert listing(folder) == before


@pytest.mark.parametrize("case", read_cases("code"))
def test_statement_is_refused(case, folder):
    import ingot

    names: dict = {"ingot": ingot}
    lines = case["code"].strip().splitlines()
    exec("\n".join(lines[:-1]), names)
    before = listing(folder)
    with pytest.raises(ingot.Error) as caught:
        exec(lines[-1], names)
    assert str(caught.value) == case["message"].strip()
    assert f"ingot.{type(caught.value).__name__}" == case["error"]
    assert listing(folder) == before


def test_there_is_a_program():
    assert Path(INGOT).exists(), f"{sys.executable} has no ingot beside it, and build/ has none"
