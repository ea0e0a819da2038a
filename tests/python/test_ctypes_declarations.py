# SPDX-License-Identifier: Apache-2.0
"""What Python declares of the C API for ctypes, against the headers and the extension."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from ingot import _core, _ctypes
from ingot._ctypes import library, structs

FOLDER = Path(__file__).parents[2] / "include/ingot"
HEADER = "".join((FOLDER / name).read_text() for name in ("base.h", "ingot.h", "build.h"))


def test_it_has_the_names_of_the_extension() -> None:
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public - set(dir(_ctypes)) == set()
    for kind in ("Engine", "FileWriter", "TensorFile"):
        methods = {name for name in dir(getattr(_core, kind)) if not name.startswith("_")}
        assert methods - set(dir(getattr(_ctypes, kind))) == (_OF_STAGED if kind == "Engine" else set()), kind


# Engines are replaced by those that a build makes, which takes the extension.
_OF_STAGED = {"copy_states", "refits", "take_engine"}


@pytest.mark.parametrize("name", sorted(library._SIGNATURES))
def test_signatures_are_those_of_the_header(name: str) -> None:
    found = re.search(rf"INGOT_API ([\w\s*]+?)\s*\bingot_{name}\((.*?)\);", HEADER, re.DOTALL)
    assert found, "the header lacks it"
    result, *arguments = library._SIGNATURES[name]
    texts = [] if found[2] == "void" else re.split(r",(?![^()]*\))", found[2])
    assert [_sizes(text) for text in texts] == [ctypes.sizeof(argument) for argument in arguments]
    assert (found[1].strip() == "void") == (result is None)
    if result is not None:
        assert _sizes(found[1]) == ctypes.sizeof(result)


def _sizes(declaration: str) -> int:
    """Bytes of the type of a declaration."""
    is_pointer = "*" in declaration or re.search(r"\b(size_t|u?int64_t|ingot_observe)\b", declaration)
    return 8 if is_pointer else 4


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (structs.Tensor, "tensor"),
        (structs.LoadOptions, "load_options"),
        (structs.Port, "port"),
        (structs.RefitOptions, "refit_options"),
        (structs.ContextOptions, "context_options"),
        (structs.Memory, "memory"),
        (structs.SessionOptions, "session_options"),
    ],
)
def test_structs_are_those_of_the_header(kind: type[ctypes.Structure], name: str) -> None:
    body = re.search(rf"typedef struct ingot_{name} \{{(.*?)\n\}} ingot_{name};", HEADER, re.DOTALL)
    assert body
    text = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
    text = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"* \1", text)  # pointers to functions
    fields = []
    for declaration in filter(str.strip, text.split(";")):
        first, *others = declaration.split(",")
        size = _sizes(first)
        fields += [(re.findall(r"\w+", part)[-1], size) for part in (first, *others)]
    assert [(field, ctypes.sizeof(type_)) for field, type_ in kind._fields_] == fields
