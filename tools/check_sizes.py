#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that files and functions stay small, and prints the medians.

Soft limits are printed; hard limits fail. Tables, which have data but no logic, are listed in size_exceptions.txt.
"""

import ast
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from source_files import report, root_argument, tracked_files

FILE_SOFT = 400
FILE_HARD = 800
FUNCTION_HARD = 80
MEDIAN_HARD = 120
EXCEPTIONS = Path(__file__).with_name("size_exceptions.txt")

# Comments, raw strings, strings and characters: none of their braces count.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
LABEL = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
SCOPE = re.compile(r"\b(?:namespace|extern|class|struct|union|enum|concept|requires)\b")
LAMBDA = re.compile(r"\]\s*\([^{}]*$")
BODY_FOLLOWS = re.compile(
    r"(?:\)|\b(?:const|noexcept|override|final|try|mutable)|->[\w\s:<>,*&\[\]]+|\})\s*$"
)


@dataclass(frozen=True)
class Function:
    file: Path
    line: int
    name: str
    length: int  # lines from the first of the signature to the closing brace


def blank(match: re.Match[str]) -> str:
    """The same number of lines, and no code."""
    return "\n" * match[0].count("\n") or " "


def block_kind(header: str, outer: str) -> str:
    """What the brace opens: "scope", "function", "inside" (of a function) or "data"."""
    if outer in ("function", "inside"):
        return "inside"
    if "(" in header and (
        LAMBDA.search(header) or ("=" not in header.split("(")[0] and BODY_FOLLOWS.search(header))
    ):
        return "function"
    if outer != "data" and SCOPE.search(header) and not header.rstrip().endswith("="):
        return "scope"
    return "data"


def is_initializer(kind: str, header: str) -> bool:
    """Whether the brace opens the initializer of a member in a constructor's header."""
    return kind == "data" and ")" in header


def function_name(header: str) -> str:
    match = re.search(r"([~\w:]+|operator[^(]*)\s*\(", header)
    return match[1] if match else "lambda"


def cpp_functions(file: Path, text: str) -> list[Function]:
    code = LABEL.sub(";", PREPROCESSOR.sub(blank, NOT_CODE.sub(blank, text)))
    found: list[Function] = []
    blocks: list[tuple[str, int, str]] = []  # kind, first line, header
    header, header_line, line = "", 0, 1
    for char in code:
        if char == "{":
            outer = blocks[-1][0] if blocks else "scope"
            kind = block_kind(header, outer)
            blocks.append((kind, header_line or line, header))
            # The braces of a member initializer belong to the constructor's header.
            header, header_line = (header + "{", header_line) if is_initializer(kind, header) else ("", 0)
        elif char == "}" and blocks:
            kind, first, opened = blocks.pop()
            if kind == "function":
                found.append(Function(file, first, function_name(opened), line - first + 1))
            header, header_line = (opened + "{}", first) if is_initializer(kind, opened) else ("", 0)
        elif char == ";":
            header, header_line = "", 0
        elif header or not (char.isspace() or char == ","):
            header, header_line = header + char, header_line or line
        line += char == "\n"
    return found


def python_functions(file: Path, text: str) -> list[Function]:
    return [
        Function(file, node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def functions_of(file: Path, text: str) -> list[Function]:
    return python_functions(file, text) if file.suffix == ".py" else cpp_functions(file, text)


def read_exceptions(path: Path) -> set[str]:
    if not path.exists():
        return set()
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if line}


def check(root: Path, exceptions: set[str]) -> list[str]:
    """Prints the report and returns what breaks a hard limit."""
    problems, functions, lengths = [], [], []
    for file in tracked_files(root, ".cpp", ".h", ".py"):
        text = (root / file).read_text(encoding="utf-8")
        length = text.count("\n")
        functions += functions_of(file, text)
        if file.parts[0] in ("src", "include"):
            lengths.append(length)
        if file.as_posix() in exceptions:
            continue
        if length > FILE_HARD:
            problems.append(f"{file}: {length} lines, the limit is {FILE_HARD}")
        elif length > FILE_SOFT:
            print(f"note: {file}: {length} lines, aim below {FILE_SOFT}")
    for item in functions:
        if item.length > FUNCTION_HARD and item.file.as_posix() not in exceptions:
            problems.append(
                f"{item.file}:{item.line}: {item.name} has {item.length} lines, limit {FUNCTION_HARD}"
            )
    if lengths:
        middle = statistics.median(lengths)
        print(f"sizes: {len(lengths)} source files, median {middle:g} lines, largest {max(lengths)}")
        if middle > MEDIAN_HARD:
            problems.append(f"the median file has {middle:g} lines, limit {MEDIAN_HARD}")
    if functions:
        sizes = sorted(item.length for item in functions)
        print(
            f"sizes: {len(sizes)} functions, median {statistics.median(sizes):g} lines, largest {sizes[-1]}"
        )
    return problems


def main() -> int:
    return report(check(root_argument(__doc__), read_exceptions(EXCEPTIONS)))


if __name__ == "__main__":
    sys.exit(main())
