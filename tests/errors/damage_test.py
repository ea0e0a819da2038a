# SPDX-License-Identifier: Apache-2.0
"""`ingot verify` on a small engine that is damaged in every way: always rejected with the name of the section.

Each byte that a section holds is changed in the long mode, and some otherwise; so are the lengths. What the same bytes do to a load is
tested in C++ (tests/engine, tests/runtime), byte by byte.
"""

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from inputs import INGOT, make_engine

EVERYTHING = os.environ.get("INGOT_LONG") == "1"
HEADER = 640
SECTIONS = ["key", "metadata", "programs", "checksums", "images", "weights"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> bytes:
    return make_engine(tmp_path_factory.mktemp("engine"), "pair")


@pytest.fixture(scope="module")
def sections(engine, tmp_path_factory) -> dict[str, range]:
    path = tmp_path_factory.mktemp("engine") / "right.ingot"
    path.write_bytes(engine)
    assert verdict(path, engine) == (0, "")
    done = subprocess.run([INGOT, "inspect", "--json", path], check=True, capture_output=True)
    rows = json.loads(done.stdout)["sections"]
    assert [row["name"] for row in rows] == SECTIONS
    return {row["name"]: range(row["offset"], row["offset"] + row["bytes"]) for row in rows}


def verdict(path: Path, content: bytes) -> tuple[int, str]:
    path.write_bytes(content)
    done = subprocess.run([INGOT, "verify", path], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def verdicts(folder: Path, contents: Iterator[tuple[object, bytes]]) -> Iterator[tuple[object, int, str]]:
    """The program's message for each, two at a time."""

    def run(numbered: tuple[int, tuple[object, bytes]]) -> tuple[object, int, str]:
        number, (label, content) = numbered
        path = folder / f"{number}.ingot"
        result = verdict(path, content)
        path.unlink()
        return label, *result

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(run, enumerate(contents))


def content_of(engine: bytes, section: range) -> range:
    """Without the padding after it."""
    return range(
        section.start, section.start + max(len(engine[section.start : section.stop].rstrip(b"\0")), 1)
    )


def chosen(places: range, count: int) -> list[int]:
    """All of them, or the ends and some between."""
    if EVERYTHING or len(places) <= count:
        return list(places)
    step = len(places) // (count - 1)
    return [*places[::step], places[-1]]


def test_every_byte_counts(engine, sections, tmp_path):
    places = {"header": range(HEADER), **sections}
    flips = [(name, at) for name, section in places.items() for at in chosen(content_of(engine, section), 8)]
    flips += [(name, section[-1]) for name, section in sections.items()]  # of the padding
    contents = (
        (flip, engine[: flip[1]] + bytes([engine[flip[1]] ^ 1]) + engine[flip[1] + 1 :]) for flip in flips
    )
    for (name, at), status, text in verdicts(tmp_path, contents):
        assert status == 1, at
        assert f"section '{name}'" in text, at


def test_every_length_counts(engine, sections, tmp_path):
    lengths = {*chosen(range(HEADER + 1), 20), len(engine) - 1}
    for section in sections.values():
        lengths |= {
            section.start - 1,
            section.start,
            section.start + 1,
            *chosen(content_of(engine, section), 4),
        }
    contents = ((length, engine[:length]) for length in sorted(lengths))
    for length, status, text in verdicts(tmp_path, contents):
        assert status == 1, length
        assert "section '" in text, length


def test_swapped_sections_are_named(engine, sections, tmp_path):
    """In each other's place: their bytes, as far as the shorter one goes, and their entries in the table."""

    def swapped() -> Iterator[tuple[tuple[str, str], bytes]]:
        for one, other in itertools.combinations(SECTIONS, 2):
            first, second = sections[one], sections[other]
            length = min(len(first), len(second))
            content = bytearray(engine)
            content[first.start : first.start + length] = engine[second.start : second.start + length]
            content[second.start : second.start + length] = engine[first.start : first.start + length]
            yield (one, other), bytes(content)
            yield ("header", "header"), swapped_entries(engine, SECTIONS.index(one), SECTIONS.index(other))

    for names, status, text in verdicts(tmp_path, swapped()):
        assert status == 1, names
        assert any(f"section '{name}'" in text for name in names), (names, text)


def swapped_entries(engine: bytes, one: int, other: int) -> bytes:
    first, second = (range(64 + 80 * index, 144 + 80 * index) for index in (one, other))
    content = bytearray(engine)
    content[first.start : first.stop] = engine[second.start : second.stop]
    content[second.start : second.stop] = engine[first.start : first.stop]
    return bytes(content)
