# SPDX-License-Identifier: Apache-2.0
"""Symbols that our binaries export: the C API and, under a private version, those that they link from each other."""

import re
import subprocess
from pathlib import Path

import pytest
from errors.inputs import INGOT
from ingot import _core

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path(_core.__file__)


def find_library(name: str) -> Path:
    """As the module finds it."""
    lines = subprocess.run(["ldd", MODULE], check=True, capture_output=True, text=True).stdout
    return Path(re.search(rf"{name}\.so\S* => (\S+)", lines)[1])


def dynamic_symbols(file: Path, which: str) -> set[tuple[str, str]]:
    """(name, version) of each."""
    command = ["nm", "-D", "-P", "--with-symbol-versions", which, file]
    names = [
        line.split()[0]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    ]
    return {tuple((name.replace("@@", "@") + "@").split("@")[:2]) for name in names}


RUNTIME, COMPILER = find_library("libingot_runtime"), find_library("libingot")
DEFINED = {library: dynamic_symbols(library, "--defined-only") for library in (RUNTIME, COMPILER)}
API = {
    library: {name for name, version in DEFINED[library] if version == "INGOT_1"} - {"INGOT_1"}
    for library in DEFINED
}


def private(symbols: set[tuple[str, str]]) -> set[str]:
    return {
        name
        for name, version in symbols
        if version.startswith("INGOT_PRIVATE") and not name.startswith("INGOT_PRIVATE")
    }


def declared() -> set[str]:
    names = ("base.h", "ingot.h", "build.h")
    headers = [(ROOT / "include/ingot" / name).read_text(encoding="utf-8") for name in names]
    return set(re.findall(r"INGOT_API[^;(]*?\b(ingot_\w+)\(", "".join(headers)))


def test_the_libraries_export_the_api():
    assert API[RUNTIME] | API[COMPILER] == declared()
    assert not API[RUNTIME] & API[COMPILER]
    assert "ingot_engine_load" in API[RUNTIME]
    assert "ingot_build_pt2" in API[COMPILER]


@pytest.mark.parametrize("library", [RUNTIME, COMPILER], ids=["runtime", "compiler"])
def test_nothing_else_is_exported_but_what_we_link(library):
    others = (MODULE, INGOT) if library == COMPILER else (MODULE, INGOT, COMPILER)
    linked = set().union(*(private(dynamic_symbols(Path(other), "--undefined-only")) for other in others))
    own = private(DEFINED[library])
    assert own <= linked  # nothing is exported in vain ...
    versions = {name for name in DEFINED[library] if re.match(r"INGOT_(1|PRIVATE)", name[0])}
    assert {name for name, _ in DEFINED[library] - versions} == API[library] | own  # ... or without a version
    assert [name for name in own if "5ingot4core" not in name] == []


def test_no_instantiation_can_interpose():
    names = {name for library in DEFINED for name, _ in DEFINED[library]}
    assert [name for name in names if re.match(r"_ZN?K?(St|3fmt|8nlohmann|4llvm|11flatbuffers)", name)] == []


def test_the_module_exports_its_initializer():
    assert {name for name, _ in dynamic_symbols(MODULE, "--defined-only")} == {"PyInit__core"}
