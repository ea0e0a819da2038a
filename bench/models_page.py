# SPDX-License-Identifier: Apache-2.0
"""The page of `python -m bench.models --write`: only what was measured."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

Rows = dict[str, list[dict[str, Any]]]
_KINDS = ("right", "wrong", "crashed", "torch")
_DTYPES = ("f32", "bf16", "f16")
_WAYS = {"jit": "torch.compile", "aot": "ahead of time"}
_MOST_REASONS = 25


def page(rows: Rows, names: list[str], causes: dict[str, str], device: str = "cpu") -> str:
    """causes: why a model is not whole in either way, where that is known."""
    rows = {name: rows[name] for name in names if name in rows}
    parts = [
        _introduction(rows, names, device),
        _totals(rows),
        _causes(rows, causes),
        _failures(rows),
        _reasons(rows),
        _breaks(rows),
        _table(rows, names),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_INTRODUCTION = """<!-- Written by `python -m bench.models{device} --write {page}`; do not edit. -->
# {title}

{models} models are in the registry (`tests/models/architectures.toml`, `tests/models/plain_*.py`): architectures of the
transformers library with small configurations, and plain torch models, all with seeded random weights. {run} of them were run{how}:

{machines}

`python -m bench.models{device} --dtypes {dtypes}` runs what has no row in `{state}` yet (`--jobs N --pin` on a large machine),
`python -m bench.models{device} NAME` one model again, and `--write` makes this page.

- **right**: all tensors of the result, also of caches, by the [accuracy rule](../tests/python/accuracy.py) against a run in f64
  (a bf16 or f16 model that does not run in f64: in f32); integers, such as classes, codes and places, differ from that run in no more
  elements than eager's. **wrong**: some are not. **crashed**: an error, or the end of the process. **torch**: eager, torch.compile or
  torch.export fails, or has the same wrong result, without Ingot too.
- **whole**: everything runs in engines, without graph breaks. *jit* is torch.compile, *aot* what `ingot.dynamo.compile` makes of a
  program of torch.export (by `ingot.dynamo.trace` where torch.export needs the values of integers in buffers); a cell without a
  word says how many nodes engines run. Empty: not run. A model is whole when one of the two ways is: torch.export takes nothing
  that branches on data, torch.compile breaks its graph there, and a user may choose.{times}"""

_PAGES = {
    "cpu": {
        "device": "",
        "page": "docs/models.md",
        "title": "Models",
        "how": ",\neach process on one thread, with other work on the machine",
        "dtypes": "f32,bf16",
        "state": "build/models.jsonl",
        "times": "\n- Times are the processor's, of modules ahead of time, medians of turns with eager. The models are small: a call of "
        "eager is mostly\n  overhead. *Build* is what follows torch.export, by the clock.",
    },
    "cuda": {
        "device": " --device cuda",
        "page": "docs/models-on-gpus.md",
        "title": "Models on GPUs",
        "how": " on a GPU,\nbeside eager there",
        "dtypes": "f32,bf16,f16",
        "state": "build/models_cuda.jsonl",
        "times": "\n- *Build* is what follows torch.export, by the clock, on one thread beside other work. Times of calls are not\n"
        "  measured: the models are small, and [gpu.md](gpu.md) has those of real ones.",
    },
}  # fmt: skip


def _introduction(rows: Rows, names: list[str], device: str) -> str:
    return _INTRODUCTION.format(models=len(names), run=len(rows), machines=_machines(rows), **_PAGES[device])


def _machines(rows: Rows) -> str:
    """What rows were measured with, most of them first."""
    found = Counter(
        f"{row['processor']}, {row['date']}, torch {row['torch']}, transformers {row['transformers']}"
        for row in _all(rows)
    )
    return "\n".join(f"- {machine}: {count} runs" for machine, count in found.most_common())


def _all(rows: Rows) -> list[dict[str, Any]]:
    return [row for each in rows.values() for row in each]


def _is_whole(row: dict[str, Any]) -> bool:
    return row["kind"] == "right" and row["in_engines"] == row["nodes"] and not row["breaks"]


def _totals(rows: Rows) -> str:
    lines = [
        "## Totals",
        "",
        "| | models | right | wrong | crashed | torch | whole |",
        "|---|---|---|---|---|---|---|",
    ]
    for way, dtype in _columns(rows):
        chosen = [row for row in _all(rows) if (row["way"], row["dtype"]) == (way, dtype)]
        kinds = Counter(row["kind"] for row in chosen)
        counts = " | ".join(str(kinds[kind]) for kind in _KINDS)
        whole = sum(_is_whole(row) for row in chosen)
        lines.append(f"| {_WAYS[way]}, {dtype} | {len(chosen)} | {counts} | {whole} |")
    lines += ["", _whole_in_one_way(rows)]
    timed = [row for row in _all(rows) if row.get("ingot_ms")]
    ratios = [row["eager_ms"] / row["ingot_ms"] for row in timed]
    if timed:
        slower = [
            f"{row['name']} {row['dtype']}" for row, ratio in zip(timed, ratios, strict=True) if ratio < 0.95
        ]
        lines += ["", f"Eager's time divided by Ingot's: geometric mean {statistics.geometric_mean(ratios):.2f} over {len(ratios)} runs; "
                  f"{', '.join(slower) or 'none'} {'are' if len(slower) > 1 else 'is'} slower than eager by more than 5 %."]  # fmt: skip
    return "\n".join(lines)


def _columns(rows: Rows) -> list[tuple[str, str]]:
    """Ways and dtypes that were run."""
    found = {(row["way"], row["dtype"]) for row in _all(rows)}
    return [(way, dtype) for dtype in _DTYPES for way in _WAYS if (way, dtype) in found]


def _whole_in_one_way(rows: Rows) -> str:
    """A user may choose the way."""
    dtypes = dict.fromkeys(dtype for _, dtype in _columns(rows))
    return " ".join(_whole_in(rows, dtype) for dtype in dtypes)


def _whole_in(rows: Rows, dtype: str) -> str:
    own = {name: [row for row in each if row["dtype"] == dtype] for name, each in rows.items()}
    own = {name: each for name, each in own.items() if each}
    whole = sum(any(map(_is_whole, each)) for each in own.values())
    share = 100 * whole / max(1, len(own))
    text = (
        f"In {dtype} {whole} of {len(own)} models ({share:.1f} %) are whole in at least one of the two ways."
    )
    torch = [name for name, each in own.items() if all(row["kind"] == "torch" for row in each)]
    others = [name for name, each in own.items() if name not in torch and not any(map(_is_whole, each))]
    if torch:
        text += f" Torch runs none of {', '.join(torch)} in either way."
    return f"{text} The others are {', '.join(others)}." if others else text


def _causes(rows: Rows, causes: dict[str, str]) -> str:
    lines = [
        f"- {name}: {causes[name]}."
        for name, each in rows.items()
        if causes.get(name) and not any(map(_is_whole, each))
    ]
    return "\n".join(["Why torch captures these in no way as a whole:", "", *lines]) if lines else ""


def _failures(rows: Rows) -> str:
    failed = [row for row in _all(rows) if row["kind"] != "right"]
    lines = [
        f"- {row['name']}, {row['way']} {row['dtype']}, **{row['kind']}**: {_code(row['message'])}"
        for row in failed
    ]
    return "\n".join(["## Not right", "", *lines]) if lines else ""


def _code(text: str) -> str:
    return f"`{text[:200].replace('`', chr(39))}`"


def _reasons(rows: Rows) -> str:
    """In how many models torch runs an operator, for which reason."""
    found: dict[str, set[str]] = {}
    for row in _all(rows):
        for reason in row.get("in_torch", {}):
            found.setdefault(reason, set()).add(row["name"])
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [
        f"| {_code(reason)} | {len(models)} | {', '.join(sorted(models)[:6])} |"
        for reason, models in ranked[:_MOST_REASONS]
    ]
    return (
        "\n".join(
            ["## What torch runs, and why", "", "| operator: reason | models | |", "|---|---|---|", *lines]
        )
        if lines
        else ""
    )


def _breaks(rows: Rows) -> str:
    lines = [
        f"- {row['name']}: {len(row['breaks'])}, the first: {_code(row['breaks'][0].splitlines()[0])}"
        for row in _all(rows)
        if row.get("breaks") and row["dtype"] == "f32"
    ]
    return "\n".join(["## Graph breaks of torch.compile", "", *lines]) if lines else ""


_FIGURES = ["breaks", "engines", "build s", "eager ms", "Ingot ms", "eager / Ingot"]


def _table(rows: Rows, names: list[str]) -> str:
    """Without columns in which nothing is."""
    columns = _columns(rows)
    heads = ["model", *(f"{way} {dtype}" for way, dtype in columns), *_FIGURES]
    lines = [_line(name, rows[name], columns) for name in names if name in rows]
    kept = [place for place in range(len(heads)) if any(line[place] for line in lines)]
    table = [heads, ["---"] * len(heads), *lines]
    return "\n".join(
        ["## All models", "", *("| " + " | ".join(line[k] for k in kept) + " |" for line in table)]
    )


def _line(name: str, rows: list[dict[str, Any]], columns: list[tuple[str, str]]) -> list[str]:
    found = {(row["way"], row["dtype"]): row for row in rows}
    cells = [_cell(found.get(column)) for column in columns]
    jit, aot = found.get(("jit", "f32")), found.get(("aot", "f32"), {})
    cells.append(str(len(jit["breaks"])) if jit and "breaks" in jit else "")
    cells.append(str((jit or aot).get("engines", "")))
    cells += [f"{aot[key]:.2f}" if aot.get(key) else "" for key in ("build_s", "eager_ms", "ingot_ms")]
    cells.append(f"{aot['eager_ms'] / aot['ingot_ms']:.2f}" if aot.get("ingot_ms") else "")
    return [name, *cells]


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if row["kind"] != "right":
        return row["kind"]
    return "whole" if _is_whole(row) else f"{row['in_engines']} of {row['nodes']} nodes"
