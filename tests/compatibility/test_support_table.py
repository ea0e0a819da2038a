# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md says what the tree says: versions, platforms, processors, GPUs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import ingot
import pytest

ROOT = Path(__file__).resolve().parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def found(pattern: str, name: str) -> str:
    match = re.search(pattern, read(name))
    assert match, f"{name} has no {pattern}"
    return match[1]


PAGE = read("docs/compatibility.md")
PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
CI = ROOT / ".ci/run"


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first column has that heading, by their first cell."""
    text = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert text, f"there is no table of {heading}"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text[1].splitlines()]
    return {first: rest for first, *rest in rows}


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_three_numbers() -> None:
    version = found(r"project\(ingot VERSION ([\d.]+)", "CMakeLists.txt")
    names = (
        "kEngineFormatVersion",
        "kLevelsFormatVersion",
        "kRanksFormatVersion",
        "kLinearSizesFormatVersion",
    )
    forms = [found(rf"{name} = (\d+);", "src/engine/section_info.h") for name in names]
    form = ", ".join(forms)
    now = {row: cells[0] for row, cells in table("number").items()}
    assert now == {
        "product version": version,
        "version of the C ABI": found(r"#define INGOT_ABI_VERSION (\d+)", "include/ingot/base.h"),
        "engine format": form,
    }
    assert ingot.__version__ == version
    reads, writes = table("version of Ingot")[version.rpartition(".")[0]]
    assert writes == form
    assert set(forms) <= set(reads.split(", "))


def test_versions_of_python() -> None:
    oldest, beyond = re.fullmatch(r">=([\d.]+),<([\d.]+)", PROJECT["requires-python"]).groups()
    rows = table("Python")
    with_compiler = {row for row, (state, _) in rows.items() if state != "no"}
    assert with_compiler == {row for row in rows if number(oldest) <= number(row) < number(beyond)}
    assert max(map(number, rows))[1] + 1 == number(beyond)[1]
    without = found(r'requires-python = ">=([\d.]+)"', "tools/build_runtime_wheel.sh")
    assert {row for row, (_, state) in rows.items() if state != "no"} == {
        row for row in rows if number(row) >= number(without)
    }
    assert without in rows
    tried = found(r"for version in ([\d. ]+);", "tools/test_wheels.sh").split()
    assert set(tried) == with_compiler


def test_versions_of_torch() -> None:
    (oldest,) = [
        re.fullmatch(r"torch>=([\d.]+)", text)[1] for text in PROJECT["optional-dependencies"]["torch"]
    ]
    rows = table("torch")
    assert min(rows, key=number) == oldest
    newest = max(rows, key=number)
    tested = [version for version, (text, *_) in rows.items() if text.startswith("tested")]
    assert tested == [found(r"torch==(\d+\.\d+)\.\d+", "Makefile")]
    assert f"torch {oldest} to {newest}" in PAGE
    assert f"torch {oldest} to {newest}" in read("include/ingot/build.h")


def test_processors() -> None:
    source = read("src/support/cpu_features.cpp")
    bases = re.search(r"kBases = \{(.*?)\};", source, re.DOTALL)
    extensions = re.search(r"kExtensions = \{(.*?)\};", source, re.DOTALL)
    assert bases
    assert extensions
    names = re.findall(r'(?:Word|Extension)\{"([\w-]+)"', bases[1] + extensions[1])
    assert len(names) > 8
    rows = " ".join(table("processor"))
    assert [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", rows)] == []


def test_gpus() -> None:
    rows = table("GPU")
    default = found(r'kDefaultDevice = "(\w+)"', "src/backends/cuda/compile/backend.cpp")
    advised = re.findall(
        r"(?:sm|compute)_\w+", found(r'"give (sm_80 or later[^"]*)"', "src/backends/cuda/compile/backend.cpp")
    )
    listed = " ".join(rows)
    assert [name for name in {default, *advised} if name not in listed] == []


@pytest.mark.parametrize(
    ("row", "steps", "test"),
    [
        ("Linux x86-64, Debian 12 (glibc 2.36)", ["make test"], "tests/python"),
        ("Windows 10 and later, x86-64", ["make windows", "--wine"], "tests/platforms/test_windows.py"),
        ("Linux aarch64 (glibc 2.36)", ["make aarch64", "--qemu"], "tests/platforms/test_aarch64.py"),
    ],
)
def test_what_is_tested_is_a_step_of_ci(row: str, steps: list[str], test: str) -> None:
    assert table("platform")[row][1].startswith("tested")
    assert (ROOT / test).exists()
    if not CI.exists():
        pytest.skip("CI is not described here")
    assert [step for step in steps if step not in CI.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("row", "requirement", "server"),
    [
        ("Ray Serve of Ray", r"^ray==(\d+\.\d+)", "ray"),
        ("MLServer", r"^mlserver==([\d.]+)", "mlserver"),
        ("Triton by PyTriton", r"^nvidia-pytriton==([\d.]+)", "triton"),
    ],
)
def test_model_servers(row: str, requirement: str, server: str) -> None:
    """The version of the environment that CI makes."""
    (version,) = re.findall(requirement, read(f"requirements/serving/{server}.txt"), re.MULTILINE)
    assert table("model server, Python 3.11")[f"{row} {version}"][0].startswith("tested")
    assert (ROOT / f"tests/serving/test_{server}.py").exists()
    if not CI.exists():
        pytest.skip("CI is not described here")
    assert "SERVERS=1" in CI.read_text(encoding="utf-8")


def test_every_platform_has_a_row() -> None:
    """Those that a build takes as its target."""
    targets = set(re.findall(r'"((?:linux|windows)-[\w-]+)"', read("src/engine/platforms.cpp")))
    assert targets == {"linux-x86-64", "windows-x86-64", "linux-aarch64"}
    rows = " ".join(table("platform")).lower()
    assert all(all(word in rows for word in target.split("-", 1)) for target in targets)


def test_the_glibc_is_that_of_the_wheels() -> None:
    glibc = found(r"manylinux_2_(\d+)_aarch64", "tools/build_aarch64.sh")
    assert PAGE.count(f"glibc 2.{glibc}") == PAGE.count("glibc 2.") == 2
