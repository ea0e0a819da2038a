#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks comments, messages and pages for habits that make English hard to read, and commit subjects for their length.

Each rule is a phrase and what to write instead; docs/glossary.md has the project's terms. A line that needs a phrase as it is
(a quotation) ends with the words "language: ok".
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from source_files import report, root_argument, tracked_files

SUFFIXES = (".h", ".cpp", ".c", ".def", ".inc", ".fbs", ".py", ".sh", ".md", ".cmake", ".txt")
# Where the phrases are data.
EXCEPTIONS = {"tools/check_language.py", "tests/tools/language_test.py", "docs/glossary.md"}
ALLOWED = "language: ok"
MAX_SUBJECT = 72
RECENT_COMMITS = 10  # checked where there is no branch to compare with

NOUNS = "argument|block|buffer|byte|call|checkpoint|dim|kernel|key|line|node|operand|process|row|run|shape|step|symbol|thread|value"
# "_" matches a space or the end of a line, with the mark of the comment that goes on.
RULES = {
    r"\b(?:one|two)_an?_[a-z]+": 'write "one per"',
    rf"\b(?:once|twice)_an?_(?:{NOUNS})\b(?!_(?:is|has|was|can))": 'write "once per"',
    r"(?<!here )\b(?:is|are|was|were)_no_(?!longer\b|more\b|one\b|doubt\b|need\b)[a-z]+": 'write "is not a"',
    r"\b(?:made|makes?)_(?:again|anew)\b": 'write "recomputed" or "rebuilt"',
    r"\b(?:took|taken?|takes)_apart\b": 'write "decomposed"',
    r"\bfunctional_twin": 'write "functional variant"',
    r"\bspelled.out_attention": 'write "decomposed attention"',
    r"\bcircular_function": 'write "trigonometric function"',
    r"\bstretch(?:es)?\b": 'write "partition" of a graph, "range" of memory',
    r"\bleast(?:\.\.|,_)typical": 'write "min..typical..max"',
    r"(?:^|\n)[ \t]*(?://|#) Of_(?:an?|the|what)_[a-z]+": "begin with the noun",
}
BREAK = r"(?:[ \t]+|[ \t]*\n[ \t]*(?://|#|\*)?[ \t]*)"
PATTERNS = [(re.compile(pattern.replace("_", BREAK)), advice) for pattern, advice in RULES.items()]


@dataclass(frozen=True)
class Finding:
    where: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text!r}: {self.advice}"


def check_text(name: str, text: str) -> list[Finding]:
    lines = text.splitlines()
    found = []
    for pattern, advice in PATTERNS:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.end() - len(match[0].lstrip())) + 1
            if ALLOWED not in lines[line - 1]:
                found.append(Finding(f"{name}:{line}", " ".join(match[0].split()), advice))
    return found


def check_files(root: Path) -> list[Finding]:
    found = []
    for file in tracked_files(root, *SUFFIXES):
        if file.as_posix() not in EXCEPTIONS:
            found += check_text(file.as_posix(), (root / file).read_text(encoding="utf-8"))
    return found


def git(root: Path, *arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(root), *arguments], check=False, capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else ""


def new_commits(root: Path) -> str:
    """The commits since the branch left main; the last ones on main itself, "" outside of a checkout."""
    head = git(root, "rev-parse", "HEAD")
    for trunk in ("origin/main", "main"):
        base = git(root, "merge-base", "HEAD", trunk)
        if base and base != head:
            return git(root, "log", "--no-merges", "--format=%h %s", f"{base}..HEAD")
    return git(root, "log", "--no-merges", "--format=%h %s", f"--max-count={RECENT_COMMITS}")


def check_subjects(log: str) -> list[Finding]:
    found = []
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > MAX_SUBJECT:
            advice = f"the subject has {len(subject)} characters, the limit is {MAX_SUBJECT}"
            found.append(Finding(f"commit {commit}", subject, advice))
    return found


def main() -> int:
    root = root_argument(__doc__)
    problems = check_files(root) + check_subjects(new_commits(root))
    if not problems:
        print("language: comments, messages, pages and commit subjects are in order")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
