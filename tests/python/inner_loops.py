# SPDX-License-Identifier: Apache-2.0
"""What the innermost loops of kernels in engine files consist of, by disassembly."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import ingot

_LINE = re.compile(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2,8} ?)+\s*\t(\S+)\s*(.*)$")
_TOOLS = {
    "x86-64": ("objdump", "-Mintel", "-mi386:x86-64"),
    "aarch64": ("aarch64-linux-gnu-objdump", "-maarch64"),
}
_MULTIPLIES = re.compile(r"vfn?madd\w+|vdpbf16ps|vpdpbusd|vpmaddwd|tdp\w+|fmla|smlal2?|smull2?|mul")
_STACK = re.compile(r"\[(?:rsp|sp)\b")
_LOADS = re.compile(
    r"(?:v?movaps|v?movups|vmovdq\w+|vbroadcast\w+|vpbroadcast\w+|vpmovsx\w+|tileloadd|ldp|ldr|ldur|ld1r?)$"
)
_BRANCHES = re.compile(r"j\w+$|b\.\w+$|cbn?z$|tbn?z$")


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str
    operands: str


@dataclass(frozen=True)
class Loop:
    """Its instructions by class."""

    multiplications: int
    loads: int  # of their own; x86 also loads in other instructions
    spills: int  # reads and writes of the stack
    others: int


def can_disassemble(cpu: str) -> bool:
    return shutil.which(_TOOLS[architecture(cpu)][0]) is not None


def architecture(cpu: str) -> str:
    return "aarch64" if cpu.startswith("aarch64") else "x86-64"


def disassembled(engine: Path, cpu: str) -> list[Instruction]:
    """All kernels of an engine file."""
    here = [Path(ingot.__file__).parents[4] / "bin/ingot", "inspect", str(engine), "--json"]
    sections = json.loads(subprocess.run(here, check=True, capture_output=True).stdout)["sections"]
    (images,) = (section for section in sections if section["name"] == "images")
    code = engine.with_suffix(".code")
    code.write_bytes(engine.read_bytes()[images["offset"] : images["offset"] + images["bytes"]])
    tool, *options = _TOOLS[architecture(cpu)]
    command = [tool, "-D", "-b", "binary", *options, str(code)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    matches = filter(None, map(_LINE.match, text.splitlines()))
    return [Instruction(int(match[1], 16), match[2], match[3]) for match in matches]


def main_loop(instructions: list[Instruction]) -> Loop:
    """The innermost loop with the most multiplications."""
    places = {instruction.address: index for index, instruction in enumerate(instructions)}
    loops = []
    for index, instruction in enumerate(instructions):
        target = re.search(r"0x([0-9a-f]+)", instruction.operands)
        if not _BRANCHES.match(instruction.name) or target is None or instruction.name == "jmp":
            continue
        begin = places.get(int(target[1], 16), index)
        body = instructions[begin : index + 1]
        if begin < index and not any(_BRANCHES.match(each.name) for each in body[:-1]):
            loops.append(_counted(body))
    return max(loops, key=lambda loop: loop.multiplications)


def _counted(body: list[Instruction]) -> Loop:
    def kind(instruction: Instruction) -> str:
        if _MULTIPLIES.fullmatch(instruction.name) and not re.search(r"\b[rx]\d", instruction.operands):
            return "multiplications"
        if _STACK.search(instruction.operands):
            return "spills"
        return "loads" if _LOADS.match(instruction.name) else "others"

    counts = Counter(map(kind, body))
    return Loop(counts["multiplications"], counts["loads"], counts["spills"], counts["others"])
