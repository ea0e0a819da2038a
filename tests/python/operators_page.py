# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators-against-torch.md from outcomes of run_operators.py: totals, and every operator that is not whole, with its reason.

python tests/python/operators_page.py OUTCOMES.jsonl ... [--slice OUTCOMES.jsonl] [--note TEXT] [--torch VERSION]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import torch
from operator_database import Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators-against-torch.md"
_HEAD = """<!-- tests/python/operators_page.py writes this page -->
# Operators against torch

Torch's operator database (OpInfo, torch {version}), all samples, each as a program of one operator through `torch.compile`'s backend
with `require_full_compilation`, against eager by the [accuracy rule](../tests/python/accuracy.py).
[Operators](operators.md) lists what is imported.{note}

    python tests/python/run_operators.py --all --dtypes float32 --output build/f32.jsonl --continue  # goes on where it was cut off
    python tests/python/run_operators.py --all --output build/2.jsonl --shard 2/8  # all dtypes, the second of eight parts
    python tests/python/run_operators.py --all --output build/all.jsonl --continue --jobs 60 --pin --seconds 480  # on a large machine
    python tests/python/run_operators.py --dtypes float64,float16,bfloat16,int32,uint8 --output build/slice.jsonl
    python tests/python/operators_page.py build/f32.jsonl --slice build/slice.jsonl

- **whole**: all samples are right, in one engine. Samples that eager itself refuses do not count.
- Operators that draw random numbers run with `random_seed=0`, so that [engines draw them](python.md#random-numbers).
- **edge**: not counted, since complex or sparse tensors enter or leave the engine, or eager has no result on a CPU.
- **partly**, **not**: some samples, or none, run in an engine; torch runs the others.

| dtype | operators | whole | edge | partly | not | wrong | crashed | whole of those without edge |
|---|---|---|---|---|---|---|---|---|
"""
_SLICE_HEAD = """
## Other dtypes: a slice of up to three samples for each operator

Of the first 24 samples, and the first one in place. What is not in an engine is so in float32 too, but for the operators named.

| dtype | operators | samples | in an engine | in torch | refused by eager | wrong | crashed | in torch, but not in float32 |
|---|---|---|---|---|---|---|---|---|
"""
_EDGES = (
    "complex numbers",
    "Please convert all Tensors to FakeTensors",
    "_to_sparse",
    '"_to_copy" is of a kind',
)


def _is_refused(row: Outcome) -> bool:
    return row.kind == "unsupported" and row.detail.startswith("eager refuses")


def verdict(rows: list[Outcome]) -> tuple[str, str]:
    """Of the samples of one operator and dtype: the kind, and the reason if it is not whole."""
    for kind, name in (("wrong", "wrong"), ("error", "crashed")):
        if bad := next((row for row in rows if row.kind == kind), None):
            return name, bad.detail
    counted = [row for row in rows if not _is_refused(row)]
    if not counted:
        return "edge", "eager refuses all samples"
    missing = Counter(row.detail for row in counted if row.kind != "right")
    if not missing:
        return "whole", ""
    reason = missing.most_common(1)[0][0]
    if any(edge in detail for detail in missing for edge in _EDGES):
        return "edge", reason
    return ("partly" if missing.total() < len(counted) else "not"), reason


def page(rows: Iterable[Outcome], note: str = "", version: str = torch.__version__) -> str:
    by_dtype: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_dtype[row.dtype or "float32"][row.name].append(row)
    text, lists = _HEAD.format(version=version.split("+")[0], note=f" {note}" if note else ""), ""
    for dtype, operators in sorted(by_dtype.items()):
        verdicts = {name: verdict(outcomes) for name, outcomes in sorted(operators.items())}
        counts = Counter(kind for kind, _ in verdicts.values())
        share = 100 * counts["whole"] / max(1, len(verdicts) - counts["edge"])
        columns = [counts[kind] for kind in ("whole", "edge", "partly", "not", "wrong", "crashed")]
        text += f"| {dtype} | {len(verdicts)} | {' | '.join(map(str, columns))} | {share:.1f} % |\n"
        lists += f"\n## {dtype}: what is not whole\n\n| operator | | reason |\n|---|---|---|\n"
        for name, (kind, reason) in verdicts.items():
            if kind != "whole":
                cell = reason[:160].replace("|", "\\|")
                lists += f"| `{name}` | {kind} | {cell} |\n"
    return text + lists


def slice_table(rows: list[Outcome], whole: list[Outcome]) -> str:
    """Counts by dtype. `whole`: the outcomes in float32."""
    lacking = {row.name for row in whole if row.kind != "right" and not _is_refused(row)}
    text = _SLICE_HEAD
    for dtype in sorted({row.dtype for row in rows}):
        own = [row for row in rows if row.dtype == dtype]
        refused = [row for row in own if _is_refused(row)]
        in_torch = [row for row in own if row.kind == "unsupported" and not _is_refused(row)]
        counts = Counter(row.kind for row in own)
        more = sorted({row.name for row in in_torch} - lacking)
        columns = [len({row.name for row in own}), len(own), counts["right"], len(in_torch), len(refused),
                   counts["wrong"], counts["error"], ", ".join(f"`{name}`" for name in more)]  # fmt: skip
        text += f"| {dtype} | {' | '.join(map(str, columns))} |\n"
    return text


def outcomes_of(paths: Iterable[str]) -> list[Outcome]:
    lines = [line for path in paths for line in Path(path).read_text().splitlines()]
    return [Outcome(**json.loads(line)) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("outcomes", nargs="+")
    parser.add_argument("--slice", nargs="*", default=[])
    parser.add_argument("--note", default="", help="where and when they ran")
    parser.add_argument("--torch", default=torch.__version__, help="with which version; default: this one")
    given = parser.parse_args()
    whole, sliced = outcomes_of(given.outcomes), outcomes_of(given.slice)
    PAGE.write_text(page(whole, given.note, given.torch) + (slice_table(sliced, whole) if sliced else ""))


if __name__ == "__main__":
    main()
