# SPDX-License-Identifier: Apache-2.0
"""Recipes for bad files: a file, and changes to it, such as `engine weights | flip images`.

pt2 NAME            an archive of tests/data/pt2
engine NAME OPTION* what `ingot build` makes of it
npy DTYPE SHAPE     zeros, as numpy saves them; `fortran` as a third word gives them in Fortran order
npz DTYPE SHAPE     the same in an archive, under the name x
zip NAME=TEXT*      an archive of such members
text WORDS          these words

cut COUNT           only so many bytes; percents are of the whole
append COUNT        zero bytes at the end
flip SECTION        one bit in the middle of a section of an engine, or of its header
deflate             members of a zip compressed
drop MEMBER         a zip without the members whose names end so
edit MEMBER OLD NEW a text in a member replaced; checksums are right again
damage MEMBER       a byte of a member changed; checksums are not
"""

import io
import json
import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]


def find_program() -> str:
    installed = Path(sys.executable).with_name("ingot")
    built = sorted(ROOT.glob("build/*/bin/ingot"), key=lambda path: path.stat().st_mtime)
    return str(built[-1] if built and not installed.exists() else installed)


INGOT = find_program()


def make_file(path: Path, recipe: str, cache: Path) -> None:
    first, *changes = [shlex.split(part) for part in recipe.split("|")]
    content = globals()[f"make_{first[0]}"](cache, *first[1:])
    for name, *arguments in changes:
        content = globals()[f"change_{name}"](content, *arguments)
    path.write_bytes(content)


def host_features(cache: Path) -> str:
    """The CPU features of engines that are built for this processor."""
    make_engine(cache, "pair")
    done = subprocess.run([INGOT, "inspect", "--json", cache / "pair.ingot"], check=True, capture_output=True)
    return json.loads(done.stdout)["target"].split()[0].removeprefix("cpu:")


def make_text(_cache: Path, *words: str) -> bytes:
    return " ".join(words).encode()


def make_pt2(_cache: Path, name: str) -> bytes:
    return (ROOT / f"tests/data/pt2/{name}.pt2").read_bytes()


def make_engine(cache: Path, name: str, *options: str) -> bytes:
    """Built once per session."""
    path = cache / ("-".join([name, *options]).replace("/", "_") + ".ingot")
    if not path.exists():
        model = ROOT / f"tests/data/pt2/{name}.pt2"
        subprocess.run([INGOT, "build", model, "-o", path, *options], check=True, capture_output=True)
    return path.read_bytes()


def make_npy(_cache: Path, dtype: str, shape: str, order: str = "") -> bytes:
    stream = io.BytesIO()
    sizes = [int(size) for size in shape.split("x")]
    numpy.save(stream, numpy.zeros(sizes, dtype, order="F" if order == "fortran" else "C"))
    return stream.getvalue()


def make_npz(_cache: Path, dtype: str, shape: str) -> bytes:
    stream = io.BytesIO()
    numpy.savez(stream, x=numpy.zeros([int(size) for size in shape.split("x")], dtype))
    return stream.getvalue()


def make_zip(_cache: Path, *members: str) -> bytes:
    return _write_zip(dict(member.split("=", 1) for member in members))


def change_cut(content: bytes, count: str) -> bytes:
    kept = len(content) * int(count[:-1]) // 100 if count.endswith("%") else int(count)
    return content[:kept]


def change_append(content: bytes, count: str) -> bytes:
    return content + bytes(int(count))


def change_flip(content: bytes, section: str) -> bytes:
    at = 40 if section == "header" else _middle_of_section(content, section)
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def change_deflate(content: bytes) -> bytes:
    return _write_zip(_read_zip(content), zipfile.ZIP_DEFLATED)


def change_drop(content: bytes, member: str) -> bytes:
    return _write_zip({name: data for name, data in _read_zip(content).items() if not name.endswith(member)})


def change_edit(content: bytes, member: str, old: str, new: str) -> bytes:
    members = _read_zip(content)
    for name, data in members.items():
        if name.endswith(member):
            assert old.encode() in data
            members[name] = data.replace(old.encode(), new.encode(), 1)
    return _write_zip(members)


def change_damage(content: bytes, member: str) -> bytes:
    data = next(data for name, data in _read_zip(content).items() if name.endswith(member))
    at = content.index(data) + len(data) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def _middle_of_section(content: bytes, name: str) -> int:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        done = subprocess.run([INGOT, "inspect", "--json", file.name], check=True, capture_output=True)
    sections = {section["name"]: section for section in json.loads(done.stdout)["sections"]}
    return sections[name]["offset"] + sections[name]["bytes"] // 2


def _read_zip(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write_zip(members: dict, method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()
