#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that names in anonymous namespaces differ throughout a folder of src/.

Unity builds compile eight files of a folder at once. A name that two of them define is an error as soon as a new file
puts them together, so it is one here at once. Functions may be overloaded: their parameters count too.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

from source_files import report, root_argument, tracked_files

RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
OTHER_SYSTEM = ("/windows/", "/posix/")  # folders of which a build has one
FOLDER = re.compile(r"^ *ingot_folder\(([\w/]+)", re.MULTILINE)
OUTER = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)(?: final)?(?: :[^;{]*)? \{", re.MULTILINE)
ENUM = re.compile(r"^enum (?!class)[^{;]*\{([^}]*)\}", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) = ([^;]*);", re.MULTILINE)
VARIABLE = re.compile(
    r"^(?:const|static|inline|thread_local)\w*\b[^;(={\n]*?\b(\w+)(?:\[[^\]]*\])* ?[={;]", re.MULTILINE
)
FUNCTION = re.compile(
    r"^(?=\w)(?!return|using|struct|class|enum|namespace|template)[^(){};=\n]*?\b(\w+)\(([^;{}]*?)\) ?(?:const )?\{",
    re.MULTILINE,
)
HEADER = re.compile(r"^inline constexpr [^;(={]*?\b(\w+)(?:\[[^\]]*\])* ?[={]", re.MULTILINE)
SEVERAL = re.compile(
    r"^(?:const|static|inline|thread_local)\w*\b[^;(={\n]*?\b\w+(?:\[[^\]]*\])* ?=[^;]*;", re.MULTILINE
)
NESTED = re.compile(r"\([^(){}\[\]]*\)|\{[^(){}\[\]]*\}|\[[^(){}\[\]]*\]")


def names_of(text: str) -> dict[str, str]:
    """Types, constants and functions (with the types of their parameters) at the outermost level; of aliases what they mean."""
    found = dict.fromkeys([*TYPE.findall(text), *VARIABLE.findall(text), *later_names(text)], "")
    for enumerators in ENUM.findall(text):
        found |= dict.fromkeys(re.findall(r"\b(\w+)(?= =|,|\s*$)", re.sub(r"//[^\n]*", "", enumerators)), "")
    found |= dict(ALIAS.findall(text))
    for name, parameters in FUNCTION.findall(text):
        types = re.sub(r"\b\w+(?=,|$)|\s+", "", re.sub(r" = [^,]*", "", parameters))
        found[f"{name}({types})"] = ""
    return found


def later_names(text: str) -> list[str]:
    """Of variables that one declaration defines: all but the first."""
    found = []
    for declaration in SEVERAL.findall(re.sub(r"//[^\n]*", "", text)):
        while declaration != (flat := NESTED.sub("", declaration)):
            declaration = flat
        found += re.findall(r",\s*(\w+) ?=(?!=)", declaration)
    return found


def definitions(text: str, is_header: bool) -> dict[str, str]:
    """The same with the namespace around the names."""
    outer = OUTER.search(text)
    space = outer[1] if outer else ""
    found: dict[str, str] = {}
    if is_header:
        found = dict.fromkeys(HEADER.findall(text), "")
    else:
        for body in ANONYMOUS.findall(text):
            found |= names_of(body)
    return {f"{space}::{name}": meaning for name, meaning in found.items()}


def check(root: Path) -> list[str]:
    folders = FOLDER.findall((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    where: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for file in tracked_files(root, ".cpp", ".h"):
        path = file.as_posix()
        owners = [folder for folder in folders if path.startswith(f"src/{folder}/")]
        if owners:
            text = RAW_STRING.sub('""', (root / file).read_text(encoding="utf-8"))  # code of other languages
            for name, meaning in definitions(text, file.suffix == ".h").items():
                where[max(owners, key=len), name][path] = meaning
    problems = []
    for (_, name), all_files in sorted(where.items()):
        for other in OTHER_SYSTEM:
            problems += problems_of(
                name, {path: meaning for path, meaning in all_files.items() if other not in path}
            )
    return list(dict.fromkeys(problems))


def problems_of(name: str, files: dict[str, str]) -> list[str]:
    """files: those that define the name in one build."""
    is_one_alias = len(set(files.values())) == 1 and all(files.values())
    if len(files) < 2 or is_one_alias:
        return []
    first, *others = sorted(files)
    return [f"{first}: {name} is defined in {', '.join(others)} too"]


def main() -> int:
    problems = check(root_argument(__doc__))
    if not problems:
        print("names: those in anonymous namespaces differ throughout each folder")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
