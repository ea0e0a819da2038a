# SPDX-License-Identifier: Apache-2.0
"""What a C header declares, and what another version of it took away or changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"INGOT_API ([^;]*?\b(ingot_\w+)\([^;]*\));")
_ENUM = re.compile(r"typedef enum (\w+) \{(.*?)\}")
_STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\} \1;")
_TYPE = re.compile(r"typedef ([^{};]*);")


@dataclass
class Header:
    functions: dict[str, str]  # declarations by name
    values: dict[str, str]  # of enums
    structs: dict[str, list[str]]  # fields in order
    types: set[str]  # handles and pointers to functions


def read(text: str) -> Header:
    text = re.sub(r"\s+", " ", _COMMENT.sub(" ", text))
    values = {}
    for _, body in _ENUM.findall(text):
        values |= dict(part.split(" = ") for part in map(str.strip, body.split(",")) if part)
    return Header(
        functions={name: declaration for declaration, name in _FUNCTION.findall(text)},
        values=values,
        structs={name: list(_fields(body)) for name, body in _STRUCT.findall(text)},
        types=set(_TYPE.findall(text)),
    )


def _fields(body: str) -> Iterator[str]:
    for declaration in filter(None, map(str.strip, body.split(";"))):
        first, *others = re.split(r",(?![^()]*\))", declaration)
        yield first
        base = re.match(r"(?:const )?\w+", first)
        yield from (f"{base[0]} {name.strip()}" for name in others)


def breaks(old: Header, new: Header) -> list[str]:
    """Why a program that was compiled with the old header may not work with what the new one declares."""
    found = [
        f"function {name} is {new.functions.get(name, 'gone')}, was {declaration}"
        for name, declaration in old.functions.items()
        if new.functions.get(name) != declaration
    ]
    found += [
        f"value {name} is {new.values.get(name, 'gone')}, was {value}"
        for name, value in old.values.items()
        if new.values.get(name) != value
    ]
    found += [f"type {text} is gone" for text in sorted(old.types - new.types)]
    for name, fields in old.structs.items():
        now = new.structs.get(name, [])
        grows = "size_t struct_size" in fields
        if (now[: len(fields)] if grows else now) != fields:
            found.append(f"struct {name} has the fields {now}, had {fields}")
    return found
